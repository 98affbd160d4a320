"""The tests reject a true null about as often as they say, and what clustering is for."""

from __future__ import annotations

import math
import random

import pytest

from sopilot_lab.statistics.clustered import sign_flip
from sopilot_lab.statistics.paired import Discordance, benjamini_hochberg, mcnemar, pool

ALPHA = 0.05


def ceiling(runs: int, rate: float = ALPHA) -> float:
    """Three and a half standard errors of the Monte Carlo estimate above the rate."""
    return rate + 3.5 * math.sqrt(rate * (1 - rate) / runs)


def null_goals(generator: random.Random, goals: int, hanging_together: bool) -> list[Discordance]:
    """No effect: each discordant pair falls by itself, or a whole goal falls to one side."""
    found = []
    for _ in range(goals):
        size = generator.randrange(1, 8)
        if hanging_together:
            wins = size if generator.random() < 0.5 else 0
        else:
            wins = sum(generator.random() < 0.5 for _ in range(size))
        found.append(Discordance(wins, size - wins))
    return found


def rejection_rates(runs: int, hanging_together: bool, seed: int) -> tuple[float, float]:
    generator = random.Random(seed)
    by_task = by_goal = 0
    for _ in range(runs):
        goals = null_goals(generator, 14, hanging_together)
        whole = pool(goals)
        by_task += mcnemar(whole.wins, whole.losses) <= ALPHA
        by_goal += sign_flip(goal.net for goal in goals).p <= ALPHA
    return by_task / runs, by_goal / runs


def test_both_hold_their_level_on_independent_pairs() -> None:
    by_task, by_goal = rejection_rates(1_500, hanging_together=False, seed=1)
    assert 0.01 < by_task <= ceiling(1_500)
    assert 0.01 < by_goal <= ceiling(1_500)


def test_only_the_clustered_test_holds_its_level_when_goals_hang_together() -> None:
    by_task, by_goal = rejection_rates(1_500, hanging_together=True, seed=2)
    assert by_task > 0.2
    assert 0.02 < by_goal <= ceiling(1_500)


def test_the_sampled_test_holds_its_level() -> None:
    generator = random.Random(3)
    runs, rejected = 1_000, 0
    for run in range(runs):
        nets = [generator.choice((-3, -2, -1, 1, 2, 3)) for _ in range(20)]
        rejected += sign_flip(nets, exact=False, draws=99, seed=run).p <= ALPHA
    assert 0.015 < rejected / runs <= ceiling(runs)


def test_benjamini_hochberg_holds_its_false_discovery_rate() -> None:
    generator = random.Random(4)
    runs, share = 1_500, 0.0
    for _ in range(runs):
        p_values = [generator.random() for _ in range(9)]
        p_values += [generator.random() ** 8 for _ in range(3)]
        rows = benjamini_hochberg(p_values, 0.1)
        found = sum(row.rejected for row in rows)
        share += sum(row.rejected for row in rows[:9]) / found if found else 0.0
    # The theory says q times the share of true nulls.
    assert share / runs == pytest.approx(0.1 * 9 / 12, abs=0.02)
