"""Several errands in one run: suspended, resumed, taken up again."""

from __future__ import annotations

from vm_programs import PROGRAMS
from vm_runs import ARGUMENTS, Run, logged_in

from sopilot.machine.state import Status
from sopilot.trace.events import Call, DomainCall, DomainResult, Fail, Return, Start


def test_a_change_of_goal_keeps_the_stack_and_comes_back_to_it() -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    frames = run.configuration.processes["p1"].frames
    started = run.ok(Start("errand", {"what": "memo"})).events[0]
    assert started.payload["suspended"] == "p1"
    assert run.configuration.processes["p1"].status is Status.SUSPENDED
    outcome = run.ok(Fail("never mind"))
    assert [event.kind for event in outcome.events] == ["fail", "resumed"]
    assert outcome.events[1].actor == "machine"
    assert run.configuration.active == "p1"
    assert run.configuration.processes["p1"].frames == frames
    assert run.configuration.suspended == ()


def test_start_of_a_suspended_goal_takes_it_up_again() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call())
    run.ok(Start("errand", {"what": "memo"}))
    again = run.ok(Start("transfer", {**ARGUMENTS, "amount": 100.0})).events[0]
    assert again.payload["reactivated"] is True
    assert run.configuration.active == "p1"
    assert run.place == "transfer/logged_in@ask"
    assert run.configuration.suspended == ("p2",)


def test_other_values_are_another_errand() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Start("transfer", {**ARGUMENTS, "amount": 5}))
    assert run.configuration.active == "p2"
    assert run.configuration.suspended == ("p1",)


def test_a_gate_is_established_for_its_own_process_and_values_only() -> None:
    run = logged_in()
    run.ok(Start("transfer", {**ARGUMENTS, "amount": 5}))
    assert run.place == "transfer@login"
    assert [one.id for one in run.configuration.processes.values() if one.gates] == ["p1"]


def test_a_gate_that_did_not_hold_is_not_established() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call())
    run.ok(Return(False))
    assert run.place == "transfer@refuse"
    assert not run.configuration.processes["p1"].gates


def test_a_result_reaches_the_process_that_made_the_call() -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.ok(DomainCall("c", "read_balance", {"username": "bob"}))
    run.ok(Start("errand"))
    event = run.ok(DomainResult("c", True, {"balance": 3})).events[0]
    assert event.process == "p1"
    top = run.configuration.processes["p1"].frame
    assert top is not None
    assert top.cursor == "done"


def test_calls_outside_of_a_process_are_recorded_as_such() -> None:
    run = Run(PROGRAMS)
    run.tool("read_balance", username="bob")
    assert [(event.kind, event.process, event.frame) for event in run.events] == [
        ("domain_call", None, ""),
        ("domain_result", None, ""),
    ]


def test_a_gate_without_its_values_is_not_taken_for_established() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"amount": 100}))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Return())
    assert run.place == "transfer@login_again"
