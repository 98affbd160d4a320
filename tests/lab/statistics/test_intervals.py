"""Intervals against their definitions, and their coverage by enumeration."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from sopilot_lab.statistics.intervals import (
    Interval,
    Undefined,
    clopper_pearson,
    clustered_interval,
    paired_difference,
    ratio,
    wilson,
)
from sopilot_lab.statistics.paired import benjamini_hochberg, holm

QUICK = settings(deadline=None, max_examples=60)


def bounds(found: Interval | Undefined) -> Interval:
    assert isinstance(found, Interval)
    return found


@st.composite
def discordants(draw: st.DrawFn) -> tuple[int, int, int]:
    wins, losses, ties = (draw(st.integers(0, 60)) for _ in range(3))
    return wins, losses, wins + losses + ties + 1


@QUICK
@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.8, 0.95]))
def test_both_intervals_of_a_rate_end_where_their_tests_reject(
    passed: int, failed: int, confidence: float
) -> None:
    trials = passed + failed + 1
    tail = (1 - confidence) / 2
    exact = bounds(clopper_pearson(passed, trials, confidence))
    assert exact.low == 0.0 or binom.sf(passed - 1, trials, exact.low) == pytest.approx(tail)
    assert binom.cdf(passed, trials, exact.high) == pytest.approx(tail)
    z = NormalDist().inv_cdf(1 - tail)
    score = bounds(wilson(passed, trials, confidence))
    for end in (score.low, score.high):
        distance = abs(passed / trials - end)
        assert distance == pytest.approx(z * math.sqrt(end * (1 - end) / trials), abs=1e-12)
    for interval in (clopper_pearson, wilson):
        assert bounds(interval(0, trials, confidence)).low == 0.0
        assert bounds(interval(trials, trials, confidence)).high == 1.0


@QUICK
@given(discordants())
def test_paired_difference_holds_its_estimate_and_mirrors(counts: tuple[int, int, int]) -> None:
    wins, losses, pairs = counts
    found = bounds(paired_difference(wins, losses, pairs))
    assert -1.0 <= found.low < (wins - losses) / pairs < found.high <= 1.0
    mirror = bounds(paired_difference(losses, wins, pairs))
    assert (mirror.low, mirror.high) == pytest.approx((-found.high, -found.low))


def reference_score(wins: int, losses: int, pairs: int, difference: float) -> float:
    """The score statistic with the restricted likelihood maximised numerically."""
    ties = pairs - wins - losses

    def deviance(loss: float) -> float:
        cells = ((wins, loss + difference), (losses, loss), (ties, 1 - difference - 2 * loss))
        return -sum(count * math.log(max(chance, 1e-300)) for count, chance in cells if count)

    low, high = max(0.0, -difference), (1 - difference) / 2
    loss = minimize_scalar(deviance, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    spread = pairs * (2 * float(loss.x) + difference - difference * difference)
    return (wins - losses - pairs * difference) / math.sqrt(spread)


@pytest.mark.parametrize(
    ("wins", "losses", "pairs"),
    [(9, 1, 125), (6, 2, 125), (58, 19, 819), (14, 32, 125), (0, 1, 44)],
)
def test_paired_difference_inverts_the_score_test(wins: int, losses: int, pairs: int) -> None:
    found = bounds(paired_difference(wins, losses, pairs))
    assert reference_score(wins, losses, pairs, found.low) == pytest.approx(1.959964, abs=1e-4)
    assert reference_score(wins, losses, pairs, found.high) == pytest.approx(-1.959964, abs=1e-4)


def test_paired_difference_without_discordance_has_its_closed_form() -> None:
    z = 1.959963984540054
    edge = z * z / (50 + z * z)
    found = bounds(paired_difference(0, 0, 50))
    assert (found.low, found.high) == pytest.approx((-edge, edge), abs=1e-9)


def nets(goals: int, size: int) -> list[tuple[str, tuple[int, int]]]:
    """Every pair of a goal falls to the same side."""
    return [(f"g{goal}", (1 if goal % 3 else -1, 1)) for goal in range(goals)] * size


def test_a_clustered_interval_is_seeded_and_wider_where_goals_agree() -> None:
    found = bounds(clustered_interval(nets(12, 6), ratio))
    uneven = [(f"g{goal}", (goal**3, 1 + goal % 4)) for goal in range(9)]
    assert clustered_interval(uneven, ratio, draws=50) == clustered_interval(
        reversed(uneven), ratio, draws=50
    )
    few = {clustered_interval(nets(12, 6), ratio, draws=20, seed=seed) for seed in range(9)}
    assert len(few) > 1
    independent = bounds(paired_difference(48, 24, 72))
    assert found.high - found.low > 1.5 * (independent.high - independent.low)


def test_draws_without_a_value_are_left_out() -> None:
    rows = [("a", (1, 1)), ("b", (0, 0))]
    assert clustered_interval(rows, ratio, draws=400) == Interval(1.0, 1.0)


def test_benjamini_hochberg_by_hand() -> None:
    rows = benjamini_hochberg([0.04, 0.01, 0.03, 0.5])
    assert [row.adjusted for row in rows] == pytest.approx([0.16 / 3, 0.04, 0.16 / 3, 0.5])
    assert [row.rejected for row in rows] == [False, True, False, False]
    assert benjamini_hochberg([]) == ()


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_both_percentiles_of_the_resampled_means_are_taken() -> None:
    # The mean of 100 values, half 0 and half 1, has a standard error of 0.05.
    rows = [(str(place), (place % 2, 1)) for place in range(100)]
    found = bounds(clustered_interval(rows, ratio, draws=4_000, seed=3))
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.01)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.01)
