"""Whole walks through hand-written programs."""

from __future__ import annotations

import pytest
from vm_programs import PROGRAMS, program
from vm_runs import ARGUMENTS, Run, decided, logged_in

from sopilot.machine.replay import replay
from sopilot.machine.state import Status
from sopilot.program.model import Check, CompleteStep, FailStep, Function, Kind, ReturnStep
from sopilot.trace.events import Call, Complete, Fail, Return, SelectBranch, Start


def test_an_executed_request() -> None:
    run = decided()
    assert run.place == "transfer@decide"
    reuse = run.events[-1]
    assert (reuse.kind, reuse.actor, reuse.payload["label"]) == ("reuse", "machine", "login_again")
    first_return = next(event for event in run.events if event.kind == "return")
    assert reuse.payload["producer"] == first_return.seq
    run.ok(SelectBranch("then"))
    assert run.no(Complete()) == "not-accepting"
    run.tool("transfer", "no", ok=False, **ARGUMENTS)
    assert run.place == "transfer@act"
    seq = run.tool("transfer", "done", **ARGUMENTS)
    assert run.place == "transfer@finish"
    assert run.configuration.goal_seq == seq
    run.ok(Complete("moved 100"))
    process = run.configuration.processes["p1"]
    assert process.status is Status.COMPLETED
    assert process.frames == ()
    assert run.configuration.active is None


def test_a_refused_request() -> None:
    run = decided(funds=False, over=False)
    assert run.no(SelectBranch("then")) == "branch-contradicts"
    run.ok(SelectBranch("no"))
    assert run.place == "transfer@refuse"
    ended = run.ok(Fail("no funds")).events[0]
    assert ended.payload["accepting"] is True
    assert run.configuration.processes["p1"].status is Status.FAILED


def test_frames_are_paths_a_person_can_read() -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    assert run.place == "transfer/any_of_funds/funds_cover@read"
    event = run.events[-1]
    assert event.frame == "transfer/any_of_funds@check_1"
    assert event.payload["resolved"] == {"username": "bob", "amount": 100}


def test_the_union_of_evidence_goes_up_with_a_group() -> None:
    run = decided()
    group = next(
        event
        for event in run.events
        if event.kind == "return" and event.payload["function"] == "any_of_funds"
    )
    results = [event.seq for event in run.events if event.kind == "domain_result"]
    assert group.payload["bound"]["evidence"] == results[1:]
    assert group.payload["bound"]["holds"] is True


def test_fail_deep_inside_ends_the_process_and_names_what_was_unwound() -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    ended = run.ok(Fail("user left")).events[0]
    assert ended.payload["accepting"] is False
    assert ended.payload["unwound"] == [
        "transfer/any_of_funds/funds_cover",
        "transfer/any_of_funds",
        "transfer",
    ]
    assert run.configuration.active is None


def test_do_and_ask_pass_by_next() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("errand"))
    run.ok(SelectBranch("long"))
    assert run.no(SelectBranch("elsewhere")) == "unknown-option"
    run.ok(SelectBranch("next"))
    run.ok(SelectBranch())
    assert run.place == "errand@write"


def test_a_password_that_was_said_already_passes_the_ask() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call())
    run.tool("login", False, ok=False, username="bob", password="wrong")
    assert run.place == "transfer/logged_in@ask"
    run.tool("login", True, username="bob", password="right")
    assert run.place == "transfer/logged_in@done"
    assert run.configuration.processes["p1"].known["password"] == "right"


def test_a_loop_of_bound_checks_stops_after_one_round() -> None:
    rule = Function("rule", Kind.RULE, (), (ReturnStep("judge"),), predicate="rule")
    steps = (
        Check("again", "rule", (), "seen", met="again", unmet="finish"),
        CompleteStep("finish"),
    )
    run = Run({"loop": program("loop", Function("loop", Kind.PROCESS, (), steps), rule)})
    run.ok(Start("loop"))
    run.ok(Call())
    assert [event.kind for event in run.ok(Return(True)).events] == ["return", "reuse"]
    assert run.place == "loop@again"
    run.ok(Call())
    run.ok(Return(False))
    assert run.place == "loop@finish"
    assert replay(run.machine, run.events) == run.configuration


def after_one_verdict(holds: bool, *checks: Check) -> Run:
    """A run of these checks of one rule, which was judged once."""
    rule = Function("frozen", Kind.RULE, (), (ReturnStep("judge"),), predicate="frozen")
    steps = (*checks, CompleteStep("finish"), FailStep("refuse"))
    run = Run({"main": program("main", Function("main", Kind.PROCESS, (), steps), rule)})
    run.ok(Start("main"))
    run.ok(Call())
    run.ok(Return(holds))
    return run


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("holds", [True, False])
def test_a_check_goes_on_by_the_truth_it_wants(holds: bool, wanted: bool) -> None:
    run = after_one_verdict(holds, Check("ask", "frozen", (), "it", wanted, "finish", "refuse"))
    assert run.place == ("main@finish" if holds == wanted else "main@refuse")


@pytest.mark.parametrize(("holds", "place"), [(True, "main@refuse"), (False, "main@finish")])
def test_a_reused_result_serves_both_polarities(holds: bool, place: str) -> None:
    run = after_one_verdict(
        holds,
        Check("first", "frozen", (), "frozen", True, "second", "second"),
        Check("second", "frozen", (), "frozen", False, "finish", "refuse"),
    )
    assert run.place == place
    assert run.events[-1].payload["producer"] == run.events[-2].seq
