"""Small cases whose answer can be worked out by hand, or is one of a kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from itertools import count, islice

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.accuracy import Rate
from sopilot_lab.statistics.binomial import as_p, at_most, fair_tail
from sopilot_lab.statistics.bootstrap import bootstrap_interval
from sopilot_lab.statistics.clustered import goal_clustered, sign_flip
from sopilot_lab.statistics.comparison import compare
from sopilot_lab.statistics.intervals import clustered_difference
from sopilot_lab.statistics.non_inferiority import (
    _largest,
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, Pair, benjamini_hochberg, mcnemar
from sopilot_lab.statistics.post_goal import post_goal
from sopilot_lab.statistics.power import tasks_needed
from sopilot_lab.statistics.undefined import Interval, Undefined

UNITS = [(1, 2), (0, 1), (2, 2)]


@pytest.mark.parametrize(
    ("draws", "confidence", "low", "high"),
    [(1, 0.5, 0, 0), (2, 0.5, 0, 1), (40, 0.5, 10, 29), (41, 0.5, 10, 30), (39, 0.95, 0, 38)],
)
def test_a_percentile_interval_leaves_out_as_many_on_either_side(
    draws: int, confidence: float, low: int, high: int
) -> None:
    values = count()
    found = bootstrap_interval(
        UNITS, lambda _: float(next(values)), confidence=confidence, draws=draws, seed=1
    )
    assert not isinstance(found, Undefined)
    assert (found.interval, found.units, found.draws) == (Interval(low, high), 3, draws)
    assert found.skipped == 0


def test_draws_without_the_statistic_are_counted_apart() -> None:
    values = iter([3.0, None, 1.0, None, None, 2.0])
    found = bootstrap_interval(UNITS, lambda _: next(values), confidence=0.5, draws=6, seed=1)
    assert not isinstance(found, Undefined)
    assert (found.interval, found.draws, found.skipped) == (Interval(1.0, 3.0), 6, 3)


def test_units_are_drawn_whole_and_as_many_as_there_are() -> None:
    seen = []
    bootstrap_interval([(1, 10), (2, 20)], lambda sums: seen.append(sums), draws=50, seed=1)
    assert set(seen) == {(2, 20), (3, 30), (4, 40)}


@pytest.mark.parametrize(
    ("given", "adjusted"),
    [
        ([], []),
        ([0.5], [0.5]),
        ([1.0, 1.0], [1.0, 1.0]),
        ([0.01, 0.04, 0.03, 0.9], [0.04, 0.16 / 3, 0.16 / 3, 0.9]),
        ([0.9, 0.03, 0.04, 0.01], [0.9, 0.16 / 3, 0.16 / 3, 0.04]),
    ],
)
def test_what_the_step_up_procedure_makes_of_p_values(
    given: list[float], adjusted: list[float]
) -> None:
    found = benjamini_hochberg(given)
    assert [one.adjusted for one in found] == pytest.approx(adjusted)
    assert [one.p for one in found] == given
    assert [one.rejected for one in found] == [one <= 0.05 for one in adjusted]


@pytest.mark.parametrize("wrong", [-0.01, 1.01, math.nan])
def test_a_p_value_is_a_probability(wrong: float) -> None:
    with pytest.raises(UserMistake, match="a p-value lies between 0 and 1"):
        benjamini_hochberg([0.1, wrong])


def test_up_to_so_many_pairs_are_counted_in_integers() -> None:
    """The two ways agree, but not to the last digit, which tells them apart."""
    counted, summed = mcnemar(10_100, 9_900), mcnemar(10_101, 9_900)
    assert counted == as_p(2 * fair_tail(9_900, 20_000), 2**20_000)
    assert counted != 2 * at_most(9_900, 20_000, 0.5)
    assert summed == 2 * at_most(9_900, 20_001, 0.5)
    assert mcnemar(20_001, 0) == mcnemar(0, 30_000) == math.ulp(0.0)
    assert mcnemar(10_001, 10_001) == 1.0
    assert mcnemar(10_001, 10_002) == pytest.approx(1.0)


@pytest.mark.parametrize("trials", [1, 2, 5, 12])
@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 2), Fraction(7, 8)])
def test_tails_are_those_of_the_fractions(trials: int, chance: Fraction) -> None:
    exact = [
        math.comb(trials, one) * chance**one * (1 - chance) ** (trials - one)
        for one in range(trials + 1)
    ]
    for one in range(trials + 1):
        assert at_most(one, trials, float(chance)) == pytest.approx(float(sum(exact[: one + 1])))


# --- not worse by more than a margin -------------------------------------------------


def points_of(of: Callable[[float], float], margin: float) -> tuple[list[float], float]:
    asked: list[float] = []

    def noted(loss: float) -> float:
        asked.append(loss)
        return of(loss)

    return asked, _largest(noted, margin)


def test_the_search_looks_at_a_grid_and_around_its_three_highest_points() -> None:
    margin = 0.2
    asked, _ = points_of(lambda _: 1.0, margin)
    grid = [margin + 0.4 * (one / 32) ** 2 for one in range(33)]
    assert asked[:33] == pytest.approx(grid)
    assert len(asked) == 33 + 3 * 24 * 2
    golden = (math.sqrt(5) - 1) / 2
    for number, (low, high) in enumerate([(0, 1), (0, 2), (1, 3)]):
        first, second = asked[33 + 48 * number : 35 + 48 * number]
        width = grid[high] - grid[low]
        assert (first, second) == pytest.approx(
            (grid[high] - golden * width, grid[low] + golden * width)
        )
        # Where both are as high, it goes on to the left.
        assert asked[33 + 48 * number + 47] == pytest.approx(grid[low], abs=width * 1e-4)


def test_the_search_ends_where_losses_are_as_many_as_can_be() -> None:
    asked, best = points_of(lambda loss: loss, 0.2)
    assert best == max(asked) == pytest.approx(0.6)
    edges = [0.2 + 0.4 * (one / 32) ** 2 for one in (31, 30, 29)]
    golden = (math.sqrt(5) - 1) / 2
    for number, (low, high) in enumerate(zip(edges, [0.6, 0.6, edges[0]], strict=True)):
        assert asked[33 + 48 * number] == pytest.approx(high - golden * (high - low))


@pytest.mark.parametrize("peak", [0.1, 0.1003, 0.15, 0.3217, 0.5499, 0.55])
def test_a_peak_between_the_points_of_the_grid_is_found(peak: float) -> None:
    _, best = points_of(lambda loss: 1.0 - abs(loss - peak), 0.1)
    assert best == pytest.approx(1.0, abs=2e-7)


@pytest.mark.parametrize(
    ("pairs", "win", "loss", "power"),
    [
        (0, 0.5, 0.5, 0.0),
        (1, 1.0, 0.0, 0.0),  # one pair shows nothing, even if it is won
        (3, 0.0, 0.0, 0.0),
        (3, 0.0, 1.0, 0.0),
        (3, 1.0, 0.0, 1.0),
        (3, 0.5, 0.5, 0.125),
        (5, 0.0, 0.0, 1.0),
        (5, 0.5, 0.5, 0.1875),
    ],
)
def test_how_likely_it_is_shown(pairs: int, win: float, loss: float, power: float) -> None:
    found = non_inferiority_power(pairs, win=win, loss=loss, margin=0.5)
    assert found == pytest.approx(power)
    assert found <= 1.0


@pytest.mark.parametrize(
    ("win", "loss", "alpha"),
    [(-0.1, 0.5, 0.05), (0.5, -0.1, 0.05), (0.6, 0.5, 0.05), (0.1, 0.1, 0.0), (0.1, 0.1, 1.0)],
)
def test_shares_and_levels_that_cannot_be(win: float, loss: float, alpha: float) -> None:
    with pytest.raises(UserMistake):
        non_inferiority_power(9, win=win, loss=loss, margin=0.1, alpha=alpha)


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.25, 0.3])
def test_that_everything_was_lost_says_nothing(margin: float) -> None:
    assert [non_inferiority(0, one, one, margin=margin) for one in (1, 6, 9)] == pytest.approx(
        [1.0, 1.0, 1.0]
    )
    assert non_inferiority(0, 6, 6, margin=margin) == 1.0


def test_the_fewest_pairs_and_the_most_losses() -> None:
    assert [least_pairs(margin=one, alpha=0.5) for one in (0.95, 0.5, 0.2)] == [1, 1, 4]
    assert [most_losses(one, margin=0.5, alpha=0.3) for one in (2, 3, 9)] == [0, 0, 3]
    assert isinstance(most_losses(0, margin=0.5), Undefined)


# --- calls after the goal ------------------------------------------------------------


def run(goal: str, calls: int | None) -> RunOutcome:
    return RunOutcome(
        task=f"{goal}-{calls}", goal=goal, kind=TaskKind.EXECUTE, passed=True, post_goal_calls=calls
    )


def test_calls_after_the_goal_are_means_of_the_runs_that_reached_it() -> None:
    first = [run("a", 4), run("a", 2), run("b", None), run("b", 0)]
    second = [run("a", 1), run("c", 2), run("c", None)]
    found = post_goal(first, second, draws=40, seed=3)
    assert (found.first, found.first_runs) == (2.0, 3)
    assert (found.second, found.second_runs, found.delta) == (1.5, 2, 0.5)
    assert not isinstance(found.interval, Undefined)
    assert found.interval.units == 3
    # A draw without any run of one side has no difference.
    assert found.interval.skipped > 0


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ([], [], ("undefined", 0, "undefined", 0)),
        ([run("a", 3)], [], (3.0, 1, "undefined", 0)),
        ([], [run("a", 5), run("b", 6)], ("undefined", 0, 5.5, 2)),
        ([run("a", None)], [run("a", 5)], ("undefined", 0, 5.0, 1)),
    ],
)
def test_a_side_without_such_a_run_has_no_mean(
    first: list[RunOutcome], second: list[RunOutcome], told: tuple[object, ...]
) -> None:
    found = post_goal(first, second)
    shown = [
        "undefined" if isinstance(one, Undefined) else one
        for one in (found.first, found.first_runs, found.second, found.second_runs)
    ]
    assert tuple(shown) == told
    for one in (found.delta, found.interval):
        assert isinstance(one, Undefined)
        assert one.reason == "one side has no run in which the goal succeeded"


def test_one_goal_alone_has_a_difference_without_an_interval() -> None:
    found = post_goal([run("a", 3)], [run("a", 1)])
    assert found.delta == 2.0
    assert isinstance(found.interval, Undefined)


def test_counting_goes_on() -> None:
    """`fair_tail` beside a sum over all sequences."""
    for trials in range(8):
        ways = [math.comb(trials, one) for one in range(trials + 1)]
        found = [fair_tail(one, trials) for one in islice(count(), trials + 1)]
        assert found == [sum(ways[: one + 1]) for one in range(trials + 1)]


# --- what holds where nothing is said ---------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "defaults"),
    [
        (compare, {"confidence": 0.95, "draws": 10_000, "seed": 27}),
        (clustered_difference, {"confidence": 0.95, "draws": 10_000, "seed": 27}),
        (post_goal, {"confidence": 0.95, "draws": 10_000, "seed": 27}),
        (goal_clustered, {"exact": True, "draws": 20_000, "seed": 27}),
        (sign_flip, {"exact": True, "draws": 20_000, "seed": 27}),
        (non_inferiority_power, {"alpha": 0.05}),
        (tasks_needed, {"alpha": 0.05, "power": 0.8}),
        (benjamini_hochberg, {"q": 0.05}),
        (Pair, {"run": 0}),
        (RunOutcome, {"run": 1}),
        (Discordance, {"wins": 0, "losses": 0}),
        (Rate, {"passed": 0, "judged": 0}),
    ],
)
def test_what_a_figure_takes_who_says_nothing(
    figure: Callable[..., object], defaults: dict[str, float]
) -> None:
    given = {name: one.default for name, one in signature(figure).parameters.items()}
    assert {name: given[name] for name in defaults} == defaults
