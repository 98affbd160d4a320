"""What fits and what does not, and that the latter changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from vm_programs import PROGRAMS, program
from vm_runs import ARGUMENTS, Run, in_rule, logged_in

from sopilot.machine.machine import Machine
from sopilot.machine.replay import replay
from sopilot.program.model import Ask, Check, FailStep, Function, Kind, Local, ReturnStep
from sopilot.trace.events import (
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Fail,
    Operation,
    Return,
    SelectBranch,
    Start,
)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (Call("overdraft"), "wrong-function"),
        (Call(arguments={"amount": 99}), "contradiction"),
        (Call(arguments={"colour": "red"}), "unknown-argument"),
        (Return(True), "wrong-step"),
        (SelectBranch("then"), "wrong-step"),
        (EmitArtifact("memo", {}), "wrong-step"),
        (Complete(), "not-accepting"),
        (Start("transfer", ARGUMENTS), "already-active"),
        (Start("transfer", {}), "already-active"),
        (Start("transfr"), "unknown-goal"),
        (Start("transfer", {"sum": 3}), "unknown-argument"),
        (DomainResult("never", True), "no-such-call"),
        (Decision("perhaps", "c1"), "unknown-decision"),
        (BindEvidence(3), "wrong-step"),
        (cast("Operation", 5), "misshapen"),
        (cast("Operation", Start(cast("str", ["x"]))), "misshapen"),
        (Return(True, cast("tuple[str, ...]", (3,))), "misshapen"),
    ],
)
def test_what_does_not_fit_changes_only_the_trace(operation: Operation, code: str) -> None:
    run = logged_in()
    run.ok(Call())
    before = run.configuration
    assert run.place == "transfer/any_of_funds@check_1"
    assert run.no(operation) == code
    assert run.configuration.numbered(before.next_seq) == before
    assert run.events[-1].kind == "rejected"
    assert replay(PROGRAMS, run.events) == run.configuration


def test_without_a_process_only_start_fits() -> None:
    run = Run(PROGRAMS)
    assert run.no(Call()) == "no-process"
    shapes = run.machine.fits(run.configuration)
    assert [(shape["operation"], shape["goal"]) for shape in shapes] == [
        ("start", "transfer"),
        ("start", "errand"),
    ]


def test_a_return_needs_a_verdict_in_a_rule_and_none_in_a_group() -> None:
    run = in_rule()
    assert run.no(Return()) == "missing-verdict"
    run.ok(Return(False))
    run.ok(Call())
    run.ok(Return(False))
    assert run.no(Return(True)) == "verdict-contradicts"
    run.ok(Return(False))


def test_learned_values_go_up_to_every_caller_and_down_to_later_frames() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"username": "bob"}))
    run.ok(Call())
    for arguments in ({}, {"password": "x"}, {"username": "eve", "password": "x"}):
        run.tool("login", **arguments)
        assert run.place == "transfer/logged_in@ask"
    run.tool("login", username="bob", password="x")
    assert run.configuration.processes["p1"].known["password"] == "x"
    run.ok(Return(True))
    run.ok(Call())
    assert run.machine.fits(run.configuration)[0]["missing"] == ["amount"]
    run.ok(Call(arguments={"amount": 70}))
    process = run.configuration.processes["p1"]
    assert [frame.locals.get("amount") for frame in process.frames] == [70, 70, 70]
    assert process.known["amount"] == 70
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Return())
    assert run.no(Start("transfer", {"username": "bob", "amount": 70})) == "already-active"


def test_a_call_without_the_value_that_only_the_user_knows_teaches_nothing() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"username": "bob"}))
    run.ok(Call())
    run.tool("login", username="bob")
    assert run.place == "transfer/logged_in@done"
    assert run.configuration.processes["p1"].known == {"username": "bob"}


def test_the_user_is_asked_for_what_is_not_known() -> None:
    rule = Function("fine", Kind.RULE, (), (Ask("ask", ("name", "mood")), ReturnStep("judge")))
    root = Function("go", Kind.PROCESS, (), (Check("first", "fine", (), "fine"), FailStep("no")))
    run = Run({"go": program("go", root, rule)})
    run.ok(Start("go"))
    assert run.no(Call(arguments={"shoe": 44})) == "unknown-argument"
    run.ok(Call())
    asks = ["ask_user", "select_branch", "return", "fail"]
    assert [shape["operation"] for shape in run.machine.fits(run.configuration)] == asks
    assert run.machine.fits(run.configuration)[0]["wants"] == ["name", "mood"]
    run.ok(Return(True, arguments={"name": "ann"}))
    run.ok(Fail("no"))
    again = Run({"go": program("go", replace(root, parameters=("name",)), rule)})
    again.ok(Start("go", {"name": "ann"}))
    again.ok(Call())
    assert again.machine.fits(again.configuration)[0]["wants"] == ["mood"]


def test_values_may_come_with_a_return() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"username": "bob"}))
    run.ok(Call())
    assert run.no(Return(True, arguments={"shoe": 44})) == "unknown-argument"
    assert run.no(Return(True, arguments={"username": "eve"})) == "contradiction"
    run.ok(Return(True, arguments={"password": "x", "username": "bob"}))
    assert run.configuration.processes["p1"].known["password"] == "x"


def test_a_value_that_is_null_is_not_learned_and_a_known_one_may_be_repeated() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"username": "bob"}))
    run.ok(Call(arguments={"username": "bob", "password": None}))
    frame = run.configuration.frame
    assert frame is not None
    assert frame.locals == {"username": "bob"}
    assert "password" not in run.configuration.processes["p1"].known


def test_values_that_people_chose_are_those_of_the_act_alone() -> None:
    """A trace may claim it of any call."""
    run = in_rule()
    known = run.configuration.processes["p1"].known
    run.ok(DomainCall("c", "read_balance", {"username": "eve"}, amended=True))
    assert run.configuration.processes["p1"].known == known


def test_recipes_in_any_order_and_by_fallback() -> None:
    run = in_rule()
    run.tool("read_part_two", n=2)
    assert run.place.endswith("@read")
    run.tool("read_part_one")
    assert run.place.endswith("funds_cover@done")
    run.ok(Return(True))
    run.ok(Call())
    run.tool("read_limit", username="bob")
    assert run.place.endswith("overdraft@read")
    run.tool("read_balance", username="eve")
    assert run.place.endswith("overdraft@read")
    run.tool("read_balance", username="bob")
    assert run.place.endswith("overdraft@done")


def test_a_result_for_a_frame_that_is_gone_moves_nothing() -> None:
    run = in_rule()
    run.ok(DomainCall("late", "read_balance", {"username": "bob"}))
    run.ok(Return(True))
    run.ok(Call())
    event = run.ok(DomainResult("late", True)).events[0]
    assert event.payload["moved"] is None
    assert run.place.endswith("overdraft@read")
    # It came in this frame's time, but the call was another frame's.
    returned = run.ok(Return(True)).events[0]
    assert returned.payload["bound"]["evidence"] == []


def test_a_missing_value_is_asked_for_by_the_name_it_has_in_the_caller() -> None:
    rule = Function("known_user", Kind.RULE, ("user",), (ReturnStep("judge"),))
    check = Check("first", "known_user", (("user", Local("heir")),), "known_user")
    root = Function("go", Kind.PROCESS, ("user", "heir"), (check, FailStep("refuse")))
    machine = Machine({"go": program("go", root, rule)})
    now = machine.step(machine.initial(), Start("go", {"user": "ann"}), at=0.0).configuration
    assert machine.fits(now)[0]["missing"] == ["heir"]
    now = machine.step(now, Call(arguments={"heir": "ben"}), at=0.0).configuration
    frame = now.frame
    assert frame is not None
    assert frame.locals == {"user": "ben"}
    assert now.processes["p1"].known == {"user": "ann", "heir": "ben"}
