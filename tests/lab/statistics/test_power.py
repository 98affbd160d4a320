"""Power against enumeration and simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.non_inferiority import non_inferiority_power
from sopilot_lab.statistics.paired import mcnemar
from sopilot_lab.statistics.power import (
    critical_values,
    mcnemar_power,
    minimum_detectable_effect,
    tasks_needed,
)
from sopilot_lab.statistics.undefined import Undefined

QUICK = settings(deadline=None, max_examples=30)


def enumerated(tasks: int, discordance: float, effect: float, alpha: float) -> float:
    win, loss = (discordance + effect) / 2, (discordance - effect) / 2
    total = 0.0
    for wins in range(tasks + 1):
        for losses in range(tasks - wins + 1):
            if mcnemar(wins, losses) <= alpha:
                ties = tasks - wins - losses
                ways = math.comb(tasks, wins) * math.comb(tasks - wins, losses)
                total += ways * win**wins * loss**losses * (1 - discordance) ** ties
    return total


@QUICK
@given(
    st.integers(0, 30),
    st.floats(0.05, 1.0),
    st.floats(-1.0, 1.0),
    st.sampled_from([0.01, 0.05, 0.0625, 0.2]),
)
def test_power_equals_enumeration(
    tasks: int, discordance: float, lean: float, alpha: float
) -> None:
    effect = lean * discordance
    found = mcnemar_power(tasks, discordance=discordance, effect=effect, alpha=alpha)
    assert found == pytest.approx(enumerated(tasks, discordance, effect, alpha), abs=1e-9)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.0625, 0.5, 0.99])
def test_critical_values_are_the_last_rejections(alpha: float) -> None:
    for pairs, bound in enumerate(critical_values(150, alpha)):
        if bound >= 0:
            assert mcnemar(bound, pairs - bound) <= alpha
        if bound + 1 <= pairs // 2:
            assert mcnemar(bound + 1, pairs - bound - 1) > alpha


def test_size_stays_below_alpha() -> None:
    for tasks in (20, 125, 830):
        assert mcnemar_power(tasks, discordance=0.1, effect=0.0) <= 0.05


def test_power_equals_simulation() -> None:
    generator = random.Random(11)
    runs, rejected = 2_000, 0
    for _ in range(runs):
        draws = [generator.random() for _ in range(125)]
        wins = sum(draw < 0.07 for draw in draws)
        losses = sum(0.07 <= draw < 0.09 for draw in draws)
        rejected += mcnemar(wins, losses) <= 0.05
    power = mcnemar_power(125, discordance=0.09, effect=0.05)
    assert abs(rejected / runs - power) < 3.5 * (power * (1 - power) / runs) ** 0.5


@pytest.mark.parametrize(("tasks", "discordance"), [(125, 0.08), (830, 0.1), (60, 0.5)])
def test_minimum_detectable_effect_has_exactly_the_power(tasks: int, discordance: float) -> None:
    effect = minimum_detectable_effect(tasks, discordance=discordance)
    assert isinstance(effect, float)
    assert mcnemar_power(tasks, discordance=discordance, effect=effect) == pytest.approx(0.8)
    larger = minimum_detectable_effect(tasks, discordance=discordance, power=0.9)
    fewer = minimum_detectable_effect(tasks * 2, discordance=discordance)
    assert isinstance(larger, float)
    assert isinstance(fewer, float)
    assert fewer < effect < larger


@pytest.mark.parametrize(
    ("discordance", "effect"), [(0.1, 0.05), (0.08, -0.064), (0.5, 0.2), (1.0, 0.6)]
)
def test_tasks_needed_is_where_power_is_reached(discordance: float, effect: float) -> None:
    tasks = tasks_needed(discordance=discordance, effect=effect)
    assert isinstance(tasks, int)
    assert mcnemar_power(tasks, discordance=discordance, effect=effect) >= 0.8
    assert mcnemar_power(tasks - 1, discordance=discordance, effect=effect) < 0.8


def test_designs_that_see_nothing_say_so() -> None:
    blind = minimum_detectable_effect(20, discordance=0.1)
    assert isinstance(blind, Undefined)
    assert "20 tasks" in blind.reason
    assert isinstance(tasks_needed(discordance=0.1, effect=0.0), Undefined)
    assert isinstance(tasks_needed(discordance=0.5, effect=0.0001), Undefined)
    assert mcnemar_power(0, discordance=0.1, effect=0.05) == 0.0


def test_impossible_designs_are_refused() -> None:
    with pytest.raises(UserMistake, match="needs at least that much discordance"):
        mcnemar_power(10, discordance=0.1, effect=0.2)
    with pytest.raises(UserMistake, match="discordance must"):
        minimum_detectable_effect(10, discordance=0.0)
    with pytest.raises(UserMistake, match="above alpha"):
        tasks_needed(discordance=0.1, effect=0.05, alpha=0.5, power=0.4)


@pytest.mark.parametrize(("tasks", "discordance"), [(40, 0.5), (125, 0.25), (60, 0.5)])
def test_an_effect_with_exactly_the_power_is_enough(tasks: int, discordance: float) -> None:
    half = discordance / 2
    power = mcnemar_power(tasks, discordance=discordance, effect=half)
    found = minimum_detectable_effect(tasks, discordance=discordance, power=power)
    assert isinstance(found, float)
    assert half - 1e-9 < found <= half


@pytest.mark.parametrize("tasks", [8, 16, 24, 32])
def test_as_many_tasks_as_have_exactly_the_power_are_enough(tasks: int) -> None:
    """Numbers at which the search looks: where it doubles, and half-way."""
    power = mcnemar_power(tasks, discordance=1.0, effect=0.6)
    found = tasks_needed(discordance=1.0, effect=0.6, power=power)
    assert isinstance(found, int)
    assert found <= tasks
    assert mcnemar_power(found, discordance=1.0, effect=0.6) >= power


@pytest.mark.parametrize(("tasks", "discordance"), [(12, 1.0), (40, 0.5)])
def test_what_only_the_largest_effect_shows_is_shown(tasks: int, discordance: float) -> None:
    best = mcnemar_power(tasks, discordance=discordance, effect=discordance)
    power = best if best < 1.0 else 1.0 - 1e-9
    found = minimum_detectable_effect(tasks, discordance=discordance, power=power)
    assert isinstance(found, float)
    assert found <= discordance


@pytest.mark.parametrize("tasks", [26, 68, 300])
def test_power_is_a_probability_whatever_the_rounding(tasks: int) -> None:
    found = mcnemar_power(tasks, discordance=0.9, effect=0.9, alpha=0.2)
    assert 0.999 < found <= 1.0
    for win in (0.7, 0.9):
        shown = non_inferiority_power(30, win=win, loss=0.01, margin=0.3, alpha=0.2)
        assert 0.999 < shown <= 1.0


@pytest.mark.parametrize(
    ("effect", "power", "tasks"), [(0.6, 0.6, 17), (0.6, 0.8, 20), (0.5, 0.8, 35), (0.4, 0.85, 56)]
)
def test_tasks_needed_where_power_climbs_with_steps_back(
    effect: float, power: float, tasks: int
) -> None:
    """More than one number is the least of its surroundings: which one is found is settled."""
    assert tasks_needed(discordance=1.0, effect=effect, power=power) == tasks
    assert mcnemar_power(tasks, discordance=1.0, effect=effect) >= power
    assert mcnemar_power(tasks - 1, discordance=1.0, effect=effect) < power
