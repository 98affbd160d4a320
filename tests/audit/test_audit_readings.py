"""How a payload, a condition of three values and approvals are read: cases by table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import program
from vm_runs import Run

from sopilot.audit.acceptance import _all_ways, _both, condition_truth
from sopilot.audit.audit import audit_trace
from sopilot.audit.guarded_calls import _approvals, _standing, _the_same
from sopilot.audit.state import AuditState, Contradiction, boolean, expect, mapping, text
from sopilot.machine.automation import Automation
from sopilot.program.model import (
    Always,
    Check,
    CompleteStep,
    Condition,
    Every,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Local,
    ReturnStep,
    Some,
)
from sopilot.trace.events import Call, Event, Fail, Return, Start

# --- payloads -------------------------------------------------------------------------

REF = {"$ref": "00", "bytes": 5}


@pytest.mark.parametrize(
    ("read", "payload", "found"),
    [
        (mapping, {"x": {"a": 1}}, {"a": 1}),
        (mapping, {}, {}),
        (mapping, {"x": REF}, "`x` is withheld"),
        (mapping, {"x": [1]}, "`x` is not an object"),
        (text, {"x": "a"}, "a"),
        (text, {}, "`x` is not a string"),
        (text, {"x": 5}, "`x` is not a string"),
        (boolean, {"x": False}, False),
        (boolean, {"x": 0}, "`x` is not true or false"),
        (boolean, {}, "`x` is not true or false"),
    ],
)
def test_a_field_of_a_payload(read: Any, payload: dict[str, Any], found: Any) -> None:
    if isinstance(found, str) and found.startswith("`"):
        with pytest.raises(Contradiction) as raised:
            read(payload, "x")
        assert str(raised.value) == found
    else:
        assert read(payload, "x") == found
        assert type(read(payload, "x")) is type(found)


@pytest.mark.parametrize(
    ("said", "computed", "problem"),
    [
        (1, 1, ""),
        (1, 1.0, ""),
        (1, True, "`x` says 1, the trace shows True"),
        (True, True, ""),
        (REF, 5, ""),
        (5, REF, ""),
        ({"a": [1, REF]}, {"a": [1, 2]}, ""),
        ({"a": 1}, {"a": 1, "b": 2}, "`x` says {'a': 1}, the trace shows {'a': 1, 'b': 2}"),
        ({"a": 1}, {"a": 2}, "`x` says {'a': 1}, the trace shows {'a': 2}"),
        ([1, 2], (1, 2), ""),
        ([1], [1, 2], "`x` says [1], the trace shows [1, 2]"),
        ([0], [False], "`x` says [0], the trace shows [False]"),
        ([], {}, "`x` says [], the trace shows {}"),
        (None, "", "`x` says None, the trace shows ''"),
        ("a" * 58, "b" * 59,
         "`x` says '" + "a" * 58 + "', the trace shows '" + "b" * 58 + "…"),
    ],
)  # fmt: skip
def test_what_the_machine_says_must_be_what_the_trace_shows(
    said: Any, computed: Any, problem: str
) -> None:
    if not problem:
        expect({"x": said}, "x", computed)
    else:
        with pytest.raises(Contradiction) as raised:
            expect({"x": said}, "x", computed)
        assert str(raised.value) == problem
    with pytest.raises(Contradiction, match="`x` is missing"):
        expect({}, "x", computed)


# --- three values ---------------------------------------------------------------------

A, B = Holds("a"), Holds("b", wanted=False)


@pytest.mark.parametrize(
    ("condition", "slots", "truth"),
    [
        (A, {"a": True}, True), (A, {"a": False}, False), (A, {"a": None}, None), (A, {}, None),
        (B, {"b": True}, False), (B, {"b": False}, True), (B, {}, None),
        (Always(True), {}, True), (Always(False), {}, False),
        (Every((A, B)), {"a": True, "b": False}, True),
        (Every((A, B)), {"a": True}, None),
        (Every((A, B)), {"b": True}, False),
        (Some((A, B)), {"a": True}, True),
        (Some((A, B)), {"a": False}, None),
        (Some((A, B)), {"a": False, "b": True}, False),
        (Every(()), {}, True), (Some(()), {}, False),
    ],
)  # fmt: skip
def test_a_condition_over_what_is_known(
    condition: Condition, slots: dict[str, bool | None], truth: bool | None
) -> None:
    assert condition_truth(condition, slots) is truth


@pytest.mark.parametrize(
    ("ways", "all_of_them"),
    [([True], True), ([False, False], False), ([True, False], None), ([None, None], None),
     ([True, None], None), ([], None)],
)  # fmt: skip
def test_ways_that_say_the_same(ways: list[bool | None], all_of_them: bool | None) -> None:
    assert _all_ways(ways) is all_of_them
    if len(ways) == 2:
        assert _both(lambda: ways[0], lambda: ways[1]) is all_of_them


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
    run = AuditState({})

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
