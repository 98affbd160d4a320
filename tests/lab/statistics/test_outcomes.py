"""Reading, pairing, rates, repetitions and calls after the goal."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.statistics.comparison import compare
from sopilot_lab.statistics.intervals import Interval, Undefined
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, pair
from sopilot_lab.statistics.rates import accuracy, pass_k, post_goal, run_to_run

QUICK = settings(deadline=None, max_examples=60)


def outcome(task: str, passed: bool | None, **fields: Any) -> RunOutcome:
    usual = {"goal": "pay", "kind": TaskKind.EXECUTE, "model": "m", "run": 0}
    return RunOutcome(task=task, passed=passed, **(usual | fields))


def repeated(table: Mapping[str, Sequence[bool]]) -> list[RunOutcome]:
    """Task → whether each of its runs passed."""
    return [
        outcome(task, bool(passed), run=run)
        for task, runs in table.items()
        for run, passed in enumerate(runs)
    ]


def test_pairs_keep_common_judged_tasks_and_name_what_was_dropped() -> None:
    left = {"both": True, "lost": False, "left": True, "broke": None, "twice": True, "other": True}
    right = dict.fromkeys(("both", "lost", "right", "broke", "twice"), True)
    first = [*(outcome(*each) for each in left.items()), outcome("twice", False)]
    second = [*(outcome(*each) for each in right.items()), outcome("other", True, goal="send")]
    found = pair(first, second)
    assert [item.task for item in found.pairs] == ["both", "lost"]
    assert found.discordance == Discordance(0, 1)
    assert {item.reason: item.tasks for item in found.dropped} == {
        "only in the first": ("left",),
        "only in the second": ("right",),
        "not judged in the first": ("broke",),
        "several runs in the first": ("twice",),
        "goal or kind differs between the two": ("other",),
    }
    assert [item.count for item in found.dropped] == [1] * 5


def test_runs_pair_with_the_run_of_the_same_number() -> None:
    first = [outcome("t", run == 2, run=run) for run in (1, 2, 3)]
    second = [outcome("t", run == 1, run=run) for run in (1, 2)]
    found = pair(first, second)
    assert [(item.run, item.net) for item in found.pairs] == [(1, -1), (2, 1)]
    assert {item.reason: item.tasks for item in found.dropped} == {
        "only in the first": ("t/run 3",)
    }
    # One run a side: whatever their numbers, they are two runs of the task.
    assert pair(first[1:2], second[:1]).discordance == Discordance(0, 0)


def test_runs_of_a_task_flip_together() -> None:
    """Against every assignment of signs to tasks, written out."""
    verdicts = {"a": (1, 1, 0), "b": (1, 0, 0), "c": (-1, 0, 0), "d": (1, 1, 1)}
    first, second = (
        repeated({task: [side * net > 0 for net in nets] for task, nets in verdicts.items()})
        for side in (1, -1)
    )
    sums = [sum(nets) for nets in verdicts.values()]
    flips = list(itertools.product((1, -1), repeat=len(sums)))
    reached = [abs(sum(s * n for s, n in zip(signs, sums, strict=True))) for signs in flips]
    compared = compare(pair(first, second), draws=10)
    assert compared.joint is not None
    assert compared.joint.p == sum(value >= abs(sum(sums)) for value in reached) / len(flips)
    assert compared.runs == 3


@pytest.mark.parametrize(
    ("models", "runs", "joint"), [("m", 1, False), ("mn", 1, True), ("m", 2, True)]
)
def test_tasks_flip_as_one_only_where_models_or_runs_repeat_them(
    models: str, runs: int, joint: bool
) -> None:
    first, second = (
        [outcome("t", passed, model=model, run=run) for model in models for run in range(runs)]
        for passed in (True, False)
    )
    compared = compare(pair(first, second), draws=10)
    assert (compared.models, compared.runs) == (len(models), runs)
    assert (compared.joint is not None) is joint


def test_discordances_by_kind_are_those_of_the_kinds_that_occur() -> None:
    kinds = {"a": TaskKind.EXECUTE, "b": TaskKind.EXECUTE}
    sides = [[outcome(task, ok, kind=kind) for task, kind in kinds.items()] for ok in (True, False)]
    assert pair(*sides).by_kind() == {TaskKind.EXECUTE: Discordance(2, 0)}


def test_one_model_a_side_pairs_by_task_and_several_by_model_too() -> None:
    small, large = [outcome("t", True, model="s")], [outcome("t", False, model="l")]
    assert pair(small, large).discordance == Discordance(1, 0)
    assert pair(small + large, small).discordance == Discordance(0, 0)
    assert [item.reason for item in pair(small + large, small).dropped] == ["only in the first"]


def test_the_same_goal_and_task_in_two_domains_stay_apart() -> None:
    first = [outcome("t", True, domain="bank"), outcome("t", False, domain="dmv")]
    second = [outcome("t", False, domain="bank"), outcome("t", False, domain="dmv")]
    assert pair(first, second).by_cluster() == {
        "bank/pay": Discordance(1, 0),
        "dmv/pay": Discordance(0, 0),
    }


VERDICTS = st.dictionaries(st.integers(0, 30).map(str), st.sampled_from([True, False, None]))


@QUICK
@given(VERDICTS, VERDICTS)
def test_every_task_is_paired_or_dropped_and_sides_swap(
    first: dict[str, bool | None], second: dict[str, bool | None]
) -> None:
    sides = [[outcome(task, passed) for task, passed in side.items()] for side in (first, second)]
    found, swapped = pair(*sides), pair(*reversed(sides))
    assert len(found) + sum(item.count for item in found.dropped) == len(first.keys() | second)
    assert (found.discordance.wins, found.discordance.losses) == (
        swapped.discordance.losses,
        swapped.discordance.wins,
    )


def test_comparison_of_nothing_is_undefined_not_zero() -> None:
    found = compare(pair([outcome("a", True)], [outcome("b", True)]))
    assert found.p == 1.0
    for figure in (found.difference, found.interval, found.clustered_interval, found.leave_one_out):
        assert isinstance(figure, Undefined)


def test_accuracy_by_kind() -> None:
    outcomes = [outcome(str(place), place < 3) for place in range(4)]
    outcomes += [outcome(f"r{place}", place < 1, kind=TaskKind.REFUSE) for place in range(2)]
    outcomes.append(outcome("broke", None))
    found = accuracy(outcomes)
    assert (found.all.passed, found.all.judged, found.unjudged) == (4, 6, 1)
    assert found.balanced == (0.75 + 0.5) / 2
    assert accuracy(outcomes[:4]).balanced == Undefined("no judged refuse task")
    assert isinstance(accuracy([]).all.share, Undefined)


@QUICK
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=6), min_size=1, max_size=5))
def test_pass_k_equals_the_mean_over_all_choices_of_runs(table: list[list[bool]]) -> None:
    outcomes = repeated({f"t{task}": runs for task, runs in enumerate(table)})
    for k in (1, 2, 4):
        choices = [list(itertools.combinations(runs, k)) for runs in table]
        found = pass_k(outcomes, k)
        expected_at = statistics.fmean(statistics.fmean(map(any, task)) for task in choices)
        expected_every = statistics.fmean(statistics.fmean(map(all, task)) for task in choices)
        assert found.at == pytest.approx(expected_at)
        assert found.every == pytest.approx(expected_every)
        assert found.tasks == len(table)


def test_tasks_with_too_few_runs_are_counted_and_left_out() -> None:
    outcomes = [outcome("a", True), outcome("a", False, run=1), outcome("b", True)]
    outcomes.append(outcome("b", None, run=1))
    found = pass_k(outcomes, 2)
    assert (found.tasks, found.short, found.at, found.every) == (1, 1, 1.0, 0.0)
    assert isinstance(pass_k(outcomes, 3).at, Undefined)


def test_run_to_run_spread_uses_tasks_that_every_run_judged() -> None:
    outcomes = repeated(
        {"a": (True, True, True), "b": (True, False, False), "c": (True, True, False)}
    )
    outcomes.append(outcome("d", True))
    found = run_to_run(outcomes)
    assert found.tasks == 3
    assert dict(found.rates) == pytest.approx({0: 1.0, 1: 2 / 3, 2: 1 / 3})
    assert found.mean == pytest.approx(2 / 3)
    assert found.variance == pytest.approx(1 / 9)
    assert found.unstable == pytest.approx(2 / 3)
    two = run_to_run(repeated({"a": (True, False), "b": (True, True)}))
    assert (two.mean, two.variance, two.unstable) == (0.75, 0.125, 0.5)
    single = run_to_run([outcome("a", True)])
    assert single.mean == 1.0
    assert isinstance(single.variance, Undefined)
    assert isinstance(run_to_run([]).mean, Undefined)
    never = run_to_run([outcome("a", True), outcome("b", True, run=1)])
    assert (never.rates, never.tasks) == ((), 0)
    assert found.agreement == pytest.approx(1 / 3)
    assert isinstance(single.agreement, Undefined)


def test_post_goal_calls_are_averaged_over_runs_whose_goal_succeeded() -> None:
    first = [outcome(f"a{n}", True, goal=f"g{n % 4}", post_goal_calls=1 + n % 2) for n in range(8)]
    second = [outcome(f"a{n}", True, goal=f"g{n % 4}", post_goal_calls=0) for n in range(7)]
    second.append(outcome("a7", False, goal="g3", post_goal_calls=None))
    found = post_goal(first, second, draws=500)
    assert (found.first, found.first_runs) == (1.5, 8)
    assert (found.second, found.second_runs) == (0.0, 7)
    assert found.delta == 1.5
    assert isinstance(found.interval, Interval)
    assert found.interval.low <= 1.5 <= found.interval.high
    assert found == post_goal(first, second, draws=500)


def test_post_goal_without_a_success_is_undefined() -> None:
    found = post_goal([outcome("a", True, post_goal_calls=2)], [outcome("a", False)])
    assert found.first == 2.0
    for figure in (found.second, found.delta, found.interval):
        assert isinstance(figure, Undefined)
    assert isinstance(post_goal([], []).first, Undefined)
