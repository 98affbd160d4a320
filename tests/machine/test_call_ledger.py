"""What a session knows of its calls from its own events, whoever wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.machine.call_ledger import CallLedger, HeldState, Ruling, rule
from sopilot.trace.events import (
    AWAITS_APPROVAL,
    AWAITS_RELEASE,
    HELD_CALL,
    OPENED,
    OUTCOME_UNKNOWN,
    TAKEN_UP,
    Event,
)
from sopilot.values.json import JSON

REQUEST: dict[str, Any] = {
    "call_id": "w",
    "action": "wire",
    "arguments": {"amount": 5},
    "awaits": AWAITS_APPROVAL,
    "roles": ["boss"],
    "needed": 1,
    "expires_at": 60.0,
}


def noted(name: str, details: dict[str, Any], actor: str = "runtime") -> CallLedger:
    ledger = CallLedger()
    ledger.fold(Event(7, 10.0, actor, "note", None, "", {"name": name, "details": details}))
    return ledger


@pytest.mark.parametrize("actor", ["runtime", "model", "user", "tool"])
def test_a_note_counts_if_the_runtime_wrote_it(actor: str) -> None:
    counts = actor == "runtime"
    for name in (OPENED, TAKEN_UP):
        assert noted(name, {"requester": "Una"}, actor).requesters == ({"una"} if counts else set())
    assert noted(HELD_CALL, {"requester": "Una"}, actor).requesters == set()
    assert noted(OUTCOME_UNKNOWN, {"call_id": "w"}, actor).unknown == ({"w": 7} if counts else {})
    assert bool(noted(HELD_CALL, REQUEST, actor).held) is counts
    assert bool(noted(HELD_CALL, REQUEST, actor).seen) is counts


def test_only_a_call_that_waits_for_people_can_be_approved() -> None:
    for awaits, fresh in ((AWAITS_RELEASE, "w"), ("root", "w.2")):
        ledger = noted(HELD_CALL, {**REQUEST, "awaits": awaits})
        assert (ledger.held, ledger.made, ledger.fresh_id("w")) == ({}, set(), fresh)
    assert noted(HELD_CALL, {**REQUEST, "call_id": 5}).held == {}


@pytest.mark.parametrize(
    ("details", "state"),
    [
        ({}, HeldState.APPROVED),
        ({"expires_at": None}, HeldState.APPROVED),
        ({"expires_at": "soon"}, HeldState.APPROVED),
        ({"expires_at": 19}, HeldState.WAITING),
        ({"needed": "1"}, HeldState.WAITING),
        ({"needed": 0}, HeldState.WAITING),
        ({"needed": -1}, HeldState.WAITING),
        ({"needed": 2}, HeldState.WAITING),
        ({"roles": "boss"}, HeldState.WAITING),
        ({"roles": ["clerk"]}, HeldState.WAITING),
    ],
)
def test_a_request_that_cannot_be_read_is_never_satisfied(
    details: dict[str, Any], state: HeldState
) -> None:
    held = noted(HELD_CALL, {**REQUEST, **details}).held["w"]
    approved = rule(held, Ruling("approve", "ann", "boss", "", 8), at=20.0, arguments={})
    assert approved.state is state
    assert not held.amended


@pytest.mark.parametrize(
    ("decisions", "state", "approvals"),
    [
        (["approve:ann:boss", "approve:bo:boss", "approve:ann:audit"], "approved", 2),
        (["approve:ann:clerk", "approve:bo:audit"], "waiting", 1),
        (["approve::boss", "approve:bo:audit"], "waiting", 1),
        (["reject:ann:clerk", "reject::boss"], "waiting", 0),
        (["reject:ann:boss", "approve:ann:boss", "approve:bo:audit"], "rejected", 0),
        (["approve:ann:boss", "approve:bo:audit", "reject:cy:boss"], "rejected", 2),
        (["expire::", "approve:ann:boss"], "expired", 0),
    ],
)
def test_decisions_in_a_trace_that_do_not_count_change_nothing(
    decisions: list[str], state: str, approvals: int
) -> None:
    ledger = noted(HELD_CALL, {**REQUEST, "needed": 2, "roles": ["boss", "audit"]})
    for number, text in enumerate(decisions, 8):
        decision, by, role = text.split(":")
        payload: dict[str, JSON] = {"decision": decision, "by": by, "role": role}
        payload |= {"call_id": "w", "reason": "so", "arguments": {}}
        ledger.fold(Event(number, 20.0, "runtime", "decision", "p1", "", payload))
    held = ledger.held["w"]
    assert (held.state, held.approvals) == (state, approvals)


@pytest.mark.parametrize(
    ("facts", "read"), [([{"function": "a"}], ({"function": "a"},)), ("a", None), (None, None)]
)
def test_facts_that_cannot_be_read_are_not_no_facts(facts: object, read: object) -> None:
    assert noted(HELD_CALL, {**REQUEST, "facts": facts}).held["w"].facts == read
    assert noted(HELD_CALL, REQUEST).held["w"].facts == ()
