"""Power against enumeration."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.statistics.paired import mcnemar
from sopilot_lab.statistics.power import mcnemar_power, minimum_detectable_effect, tasks_needed

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


def test_size_stays_below_alpha() -> None:
    for tasks in (20, 125, 830):
        assert mcnemar_power(tasks, discordance=0.1, effect=0.0) <= 0.05


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
