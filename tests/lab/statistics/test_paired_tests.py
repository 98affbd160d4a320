"""McNemar and the sign-flip tests against enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.statistics.clustered import (
    LeaveOneOut,
    goal_clustered,
    leave_one_goal_out,
    sign_flip,
)
from sopilot_lab.statistics.intervals import Undefined
from sopilot_lab.statistics.paired import Discordance, adjusted_within, holm, mcnemar

QUICK = settings(deadline=None, max_examples=60)
COUNTS = st.integers(0, 400)


def test_mcnemar_by_hand() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(1, 0) == 1.0
    assert mcnemar(5, 0) == 2 / 32
    assert mcnemar(1, 5) == 14 / 64


@QUICK
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.0, 1.0)), max_size=9))
def test_each_family_is_adjusted_alone_wherever_its_tests_stand(
    tests: list[tuple[str, float]],
) -> None:
    groups, p_values = [group for group, _ in tests], [p for _, p in tests]
    adjusted = adjusted_within(groups, p_values, holm)
    for group in "ab":
        own = [p for each, p in tests if each == group]
        mine = [p for each, p in zip(groups, adjusted, strict=True) if each == group]
        assert mine == holm(own)


def enumerated(nets: list[int]) -> float:
    observed = abs(sum(nets))
    sums = [
        sum(sign * net for sign, net in zip(signs, nets, strict=True))
        for signs in itertools.product((1, -1), repeat=len(nets))
    ]
    return sum(abs(total) >= observed for total in sums) / len(sums)


@QUICK
@given(st.lists(st.integers(-9, 9), max_size=9))
def test_sign_flip_equals_enumeration(nets: list[int]) -> None:
    assert sign_flip(nets).p == pytest.approx(enumerated(nets), abs=1e-12)


@QUICK
@given(COUNTS.filter(lambda count: count < 60), COUNTS.filter(lambda count: count < 60))
def test_units_of_one_pair_give_mcnemar(wins: int, losses: int) -> None:
    assert sign_flip([1] * wins + [-1] * losses).p == pytest.approx(mcnemar(wins, losses))


@QUICK
@given(st.lists(st.integers(-9, 9), max_size=30), st.randoms(use_true_random=False))
def test_sign_flip_ignores_order_side_and_zeros(nets: list[int], shuffler: object) -> None:
    p = sign_flip(nets).p
    assert 0.0 < p <= 1.0
    assert sign_flip([-net for net in reversed(nets)] + [0, 0]).p == p


def test_sampled_sign_flip_is_seeded_and_close_to_the_exact_one() -> None:
    nets = [4, 3, 3, 2, 2, 1, 1, 1, -1, -1, -2, -3, 2, 1, 1, 1, 2]
    exact = sign_flip(nets)
    sampled = sign_flip(nets, exact=False)
    assert exact.draws is None
    assert sampled.draws == 20_000
    error = (exact.p * (1 - exact.p) / 20_000) ** 0.5
    assert abs(sampled.p - exact.p) < 4 * error
    assert sampled == sign_flip(nets, exact=False, seed=27)
    assert sampled != sign_flip(nets, exact=False, seed=28)


def test_sampled_p_counts_the_observed_assignment() -> None:
    assert sign_flip([1] * 60, exact=False, draws=999).p == 1 / 1000
    assert sign_flip([1] * 60, exact=False, draws=1).p == 1 / 2
    assert sign_flip([], exact=False, draws=9).p == 1.0


def test_goal_clusters_flip_as_one() -> None:
    by_goal = {"a": Discordance(5, 0), "b": Discordance(3, 1), "c": Discordance(1, 0)}
    found = goal_clustered(by_goal)
    assert (found.units, found.net) == (3, 8)
    assert found.p == enumerated([5, 2, 1]) == 0.25
    assert mcnemar(9, 1) < 0.05 < found.p


def test_leave_one_goal_out_names_the_goal_that_carries_the_result() -> None:
    by_goal = {"a": Discordance(6, 0), "b": Discordance(2, 1), "c": Discordance(1, 0)}
    assert leave_one_goal_out(by_goal) == LeaveOneOut(mcnemar(3, 1), "a")
    assert isinstance(leave_one_goal_out({"a": Discordance(6, 0)}), Undefined)
    assert isinstance(leave_one_goal_out({}), Undefined)


def test_a_goal_without_discordance_keeps_the_whole_p_in_the_maximum() -> None:
    by_goal = {"a": Discordance(1, 4), "b": Discordance(0, 0), "c": Discordance(4, 1)}
    found = leave_one_goal_out(by_goal)
    assert isinstance(found, LeaveOneOut)
    assert found.p == mcnemar(5, 5) == 1.0
