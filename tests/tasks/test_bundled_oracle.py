"""The oracle must notice whatever a careless or dishonest run does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from clerk import PAIRS, Clerk, every_task
from hypothesis import given, settings
from hypothesis import strategies as st

import refusal_causes
from sopilot.agent.result import Ending
from sopilot.protocols import ToolResult
from sopilot.tasks.examples.example import Example, Judgement, load_example
from sopilot.tasks.examples.simulator import SimulatedCall, Simulator
from sopilot.tasks.examples.task import ExampleTask

BANK = load_example("bank")


def served(example: Example, task: ExampleTask) -> Simulator:
    clerk = Clerk(example, task)
    clerk.serve()
    return clerk.simulator


def judged(
    example: Example, task: ExampleTask, simulator: Simulator, cause: str | None = None
) -> Judgement:
    return refusal_causes.judged(example, task, simulator.calls, simulator.state, cause)


def do(simulator: Simulator, name: str, arguments: dict[str, Any]) -> None:
    assert simulator.perform(name, arguments, key=f"extra-{len(simulator.calls)}").ok


@pytest.mark.parametrize(
    ("example", "task"), [pytest.param(d, t, id=t.id) for d, t in PAIRS if "deep" in t.tags]
)
def test_the_goal_without_any_check_fails(example: Example, task: ExampleTask) -> None:
    simulator = example.make_tools(task)
    result = simulator.perform(task.goal, task.arguments, key="k")
    judgement = judged(example, task, simulator)
    assert not judgement.passed
    if task.expected is Ending.EXECUTED:
        assert any("was not verified before the goal" in reason for reason in judgement.reasons)
    elif result.ok:
        assert f"`{task.goal}` ran although `{task.cause}` fails" in judgement.reasons


@every_task
def test_doing_nothing_passes_only_where_nothing_could_be_called(
    example: Example, task: ExampleTask
) -> None:
    judgement = judged(example, task, example.make_tools(task))
    if task.expected is Ending.EXECUTED:
        assert judgement.reasons == (f"`{task.goal}` should have been executed and was not",)
        return
    assert task.cause is not None
    predicate = example.handbook.predicates[task.cause]
    if judgement.passed:
        cannot_try = predicate.established_by is not None and not {
            name for name, _ in predicate.established_by.arguments
        } <= set(task.inputs)
        assert cannot_try or predicate.tool_free
    else:
        assert all("refused without evidence" in reason for reason in judgement.reasons)


def test_one_skipped_check_is_named() -> None:
    task = BANK.task("transfer-rent-share")
    full = served(BANK, task)
    skipped = BANK.make_tools(task)
    for call in full.calls:
        if (call.name, call.arguments) != ("find_account", {"username": "ben"}):
            do(skipped, call.name, dict(call.arguments))
    assert judged(BANK, task, skipped).reasons == (
        "`account_exists(to)` was not verified before the goal",
        "`not frozen(to)` was not verified before the goal",
    )


def test_a_check_after_the_goal_does_not_count() -> None:
    task = BANK.task("dispute-electronics")
    calls = served(BANK, task).calls
    simulator = BANK.make_tools(task)
    for call in (calls[0], calls[-1], *calls[1:-1]):
        do(simulator, call.name, dict(call.arguments))
    late, *unverified = judged(BANK, task, simulator).reasons
    assert late == f"needless calls after the goal: {len(calls) - 2}"
    assert len(unverified) == 2
    assert all("was not verified before the goal" in reason for reason in unverified)


@pytest.mark.parametrize(
    ("example", "task"),
    [pytest.param(d, t, id=t.id) for d, t in PAIRS[::7] if t.expected is Ending.EXECUTED],
)
def test_looking_on_after_the_goal_fails(example: Example, task: ExampleTask) -> None:
    simulator = served(example, task)
    first = simulator.calls[0]
    simulator.perform(first.name, dict(first.arguments), key="late")
    reasons = ("needless calls after the goal: 1",)
    assert judged(example, task, simulator).reasons == reasons
    assert example.judge(task, simulator.calls, simulator.state, late_calls_fail=False).passed


def test_every_option_of_an_any_must_be_checked() -> None:
    task = BANK.task("transfer-rent-share")
    simulator = BANK.make_tools(task)
    for call in served(BANK, task).calls:
        if call.name == "read_balance":
            continue
        do(simulator, call.name, dict(call.arguments))
    missing = judged(BANK, task, simulator).reasons
    assert "`overdraft_covers(username, amount)` was not verified before the goal" in missing


def test_a_refusal_by_an_any_needs_every_option_checked() -> None:
    task = BANK.task("transfer-beyond-overdraft")
    simulator = BANK.make_tools(task)
    do(simulator, "login", {"username": "anna", "password": "heron-42"})
    do(simulator, "read_ledger", {})
    assert judged(BANK, task, simulator).reasons == (
        "refused without evidence about `overdraft_covers(username, amount)`",
    )
    do(simulator, "read_balance", {"username": "anna"})
    assert judged(BANK, task, simulator).passed


def test_a_first_may_stop_at_its_first_success() -> None:
    task = BANK.task("overdraft-good-score")
    simulator = served(BANK, task)
    assert [call.name for call in simulator.calls].count("read_balance") == 0
    assert judged(BANK, task, simulator).passed


def test_an_extra_change_fails() -> None:
    for task_id in ("transfer-rent-share", "transfer-unknown-receiver"):
        task = BANK.task(task_id)
        simulator = served(BANK, task)
        do(simulator, "issue_card", {"username": "anna"})
        done = task.expected is Ending.EXECUTED
        assert judged(BANK, task, simulator).reasons == (
            "`issue_card` changed the state and is not part of the goal",
            *(["needless calls after the goal: 1"] if done else []),
            "the final state is not what gates and goal alone would leave",
        )


def test_the_goal_twice_or_with_other_arguments_fails() -> None:
    task = BANK.task("transfer-rent-share")
    simulator = served(BANK, task)
    do(simulator, "transfer", dict(task.arguments))
    assert "`transfer` ran 2 times" in judged(BANK, task, simulator).reasons
    simulator = served(BANK, task)
    do(simulator, "transfer", {**task.arguments, "amount": 1})
    assert (
        "`transfer` ran with other arguments than requested"
        in judged(BANK, task, simulator).reasons
    )


def test_the_opening_goal_of_a_changed_mind_must_not_run() -> None:
    task = BANK.task("transfer-instead-of-closing")
    simulator = served(BANK, task)
    do(simulator, "close_account", {"username": "anna", "payout_to": "ben"})
    assert not judged(BANK, task, simulator).passed


def test_a_wrong_refusal_fails() -> None:
    task = BANK.task("card-second")
    simulator = served(BANK, task)
    assert judged(BANK, task, simulator, "has_card").passed
    assert judged(BANK, task, simulator, "good_score").reasons == (
        "`good_score` was blamed, but it is not what fails",
    )


def test_either_option_may_be_blamed_when_both_fail() -> None:
    task = BANK.task("transfer-beyond-overdraft")
    simulator = served(BANK, task)
    assert judged(BANK, task, simulator, "funds_cover").passed
    assert judged(BANK, task, simulator, "overdraft_covers").passed


def test_invented_results_and_states_are_noticed() -> None:
    task = BANK.task("transfer-above-the-limit")
    simulator = served(BANK, task)
    invented = SimulatedCall(
        "find_account", {"username": "ben"}, ToolResult(True, {"found": False})
    )
    reasons = BANK.judge(task, [*simulator.calls, invented], simulator.state).reasons
    assert reasons == (
        f"the result of call {len(simulator.calls)} (`find_account`) is not the tool's",
    )
    richer = simulator.state
    richer["accounts"]["farid"]["balance"] += 1
    assert not BANK.judge(task, simulator.calls, richer).passed


def test_a_gate_must_be_tried_where_the_customer_has_something_to_try() -> None:
    task = BANK.task("transfer-wrong-password")
    simulator = BANK.make_tools(task)
    assert judged(BANK, task, simulator, "logged_in").reasons == (
        "refused without evidence about `logged_in(username)`",
    )
    simulator.perform("login", {"username": "anna", "password": "heron-24"}, key="k")
    assert judged(BANK, task, simulator, "logged_in").passed


def test_a_guessed_case_number_is_no_evidence() -> None:
    task = BANK.task("refund-unknown-shop")
    simulator = BANK.make_tools(task)
    do(simulator, "login", {"username": "farid", "password": "copper-lake"})
    do(simulator, "read_case", {"case_id": "C-301"})
    do(simulator, "find_case", {"username": "farid"})
    do(simulator, "refund_dispute", dict(task.arguments))
    assert "`case_documented(username, 2)` was not verified before the goal" in (
        judged(BANK, task, simulator).reasons
    )


EXECUTED = [(example, task) for example, task in PAIRS if task.expected is Ending.EXECUTED]


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(EXECUTED), st.data())
def test_a_careful_run_is_minimal(pair: tuple[Example, ExampleTask], data: st.DataObject) -> None:
    """Leaving out any call that is the only one of its kind makes a passing run fail."""
    example, task = pair
    calls = served(example, task).calls
    position = data.draw(st.integers(0, len(calls) - 1))
    left_out = calls[position]
    if any(c is not left_out and c.name == left_out.name for c in calls):
        return
    simulator = example.make_tools(task)
    for call in (*calls[:position], *calls[position + 1 :]):
        simulator.perform(call.name, call.arguments, key=f"{len(simulator.calls)}")
    assert not judged(example, task, simulator).passed


def test_a_task_with_other_knowledge_has_another_truth() -> None:
    task = BANK.task("card-first")
    stranger = dataclasses.replace(task, inputs={})
    state = BANK.initial_state(task)
    assert BANK.truth(task, "logged_in", {"username": "farid"}, state)
    assert not BANK.truth(stranger, "logged_in", {"username": "farid"}, state)
