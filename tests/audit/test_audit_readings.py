"""How the audit counts the people who approved a call, and names the causes of a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from readings_at_hand import REF, audit_state
from vm_programs import program
from vm_runs import Run

from sopilot.audit.audit import audit_trace
from sopilot.audit.guarded_calls import _approvals, _standing, _the_same
from sopilot.machine.automation import Automation
from sopilot.program.model import (
    Check,
    CompleteStep,
    FailStep,
    Function,
    Guarded,
    Kind,
    Local,
    ReturnStep,
)
from sopilot.trace.events import Call, Event, Fail, Return, Start

# --- approvals ------------------------------------------------------------------------


def approved(by: str, role: str, at: float = 0.0, decision: str = "approve") -> Event:
    payload = {"decision": decision, "call_id": "c", "by": by, "role": role}
    return Event(5, at, "operator", "decision", None, "", payload)


@pytest.mark.parametrize(
    ("needed", "roles", "by", "count"),
    [
        (1, ("head",), [], 0),
        (1, ("head",), [("Sue", "head")], 1),
        (2, ("head",), [("Sue", "head"), ("SUE ", "head")], 1),
        (2, ("head",), [("Sue", "head"), ("Bob", "head")], 2),
        (2, ("head", "desk"), [("Sue", "head"), ("Bob", "head")], 1),
        (2, ("head", "desk"), [("Sue", "head"), ("Bob", "desk")], 2),
        (2, ("head", "desk"), [("Sue", "head"), ("Sue", "desk")], 1),
        (2, ("head", "desk"), [("Ann", "desk"), ("Ann", "head"), ("Bob", "desk")], 2),
        (2, ("head", "desk"), [("Bob", "desk"), ("Sue", "desk"), ("Sue", "head")], 2),
    ],
)
def test_people_are_counted_once_and_in_roles_of_their_own(
    needed: int, roles: tuple[str, ...], by: list[tuple[str, str]], count: int
) -> None:
    guarded = Guarded("pay", needed=needed, roles=roles)
    assert _approvals([approved(*one) for one in by], guarded) == count


def test_what_stands_of_the_decisions() -> None:
    guarded = Guarded("pay", needed=1, roles=("head",), expires_seconds=10)
    call = Event(9, 20.0, "model", "domain_call", None, "", {})
    sue, late = approved("Sue", "head", 10.0), approved("Bob", "head", 9.9)
    nobody, other = approved("", "head", 20.0), approved("Eve", "desk", 20.0)
    amended = approved("Ann", "head", 15.0, "amend")
    run = audit_state({})

    def standing(*decisions: Event) -> list[Event]:
        return _standing(run, call, "c", guarded, decisions)

    assert standing(sue, late, nobody, other, approved("Al", "head", 20.0, "reject")) == [sue]
    assert standing(sue, amended) == [amended]
    assert standing(amended, sue) == [amended, sue]
    run.held["c"] = 9.0  # expiry counts from when people were asked
    assert standing(sue, amended) == []
    run.held["c"] = 10.0
    assert standing(sue) == [sue]


@pytest.mark.parametrize(
    ("amended", "called", "same"),
    [({"a": 1}, {"a": 1.0}, True), ({"a": 1}, {"a": 2}, False), (REF, {"a": 1}, True),
     ({"a": 1}, REF, True), (REF, REF, True), (REF, {"$ref": "11", "bytes": 5}, False)],
)  # fmt: skip
def test_amended_and_called(amended: Any, called: Any, same: bool) -> None:
    assert _the_same(amended, called) is same


# --- verdicts taken over --------------------------------------------------------------


@pytest.mark.parametrize("wanted", [True, False])
def test_a_cause_that_is_met_twice_is_named_once(wanted: bool) -> None:
    small = Function("small", Kind.RULE, ("n",), (ReturnStep("end"),), predicate="small")
    other = replace(small, name="other", predicate="other")
    terms = (("n", Local("n")),)
    steps = (
        Check("a", "other", terms, "o", False, unmet="b"),
        Check("b", "small", terms, "x", unmet="c"),
        Check("c", "small", terms, "y", wanted, met="no", unmet="no"),
        CompleteStep("done"),
        FailStep("no"),
    )
    made = program("go", Function("go", Kind.PROCESS, ("n",), steps), small, other)
    run = Run({"go": made})
    run.ok(Start("go", {"n": 1}))
    run.ok(Call())
    run.ok(Return(False))
    run.ok(Call())
    run.ok(Return(False))
    run.settle(Automation(reuse_verdicts=True))
    assert run.place == "go@no"
    assert run.events[-1].kind == "reuse"
    run.ok(Fail("no"))
    report = audit_trace({"go": made}, run.events)
    assert report.clean
    assert report.score_card.reused == 1
    (refusal,) = report.refusals
    assert [one["predicate"] for one in refusal.causes] == ["small"]
