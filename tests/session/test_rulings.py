"""What a decision makes of a held call, who may make it, and what a trace says about calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sopilot.machine.approvals import CallLedger, HeldCall, HeldState, Ruling, rule
from sopilot.machine.program_set import guarded_actions
from sopilot.machine.state import Configuration
from sopilot.messages.errors import UserMistake
from sopilot.program.model import ActionFacts, Guarded, Program, Source
from sopilot.records.entitlements import Entitlements, Vote
from sopilot.records.people import THE_MACHINE, Deputy, People, Person, Principal
from sopilot.trace.events import Event
from sopilot.values.json import JSON

HELD = HeldCall(
    "w", "wire", {"to": "una", "amount": 9}, "p1", ("boss", "audit"), 2, 100.0, 200.0, 7
)


def ruled(held: HeldCall, *decisions: str, at: float = 150.0) -> HeldCall:
    """Apply decisions, each written as ``decision:name:role``."""
    for text in decisions:
        decision, by, role = text.split(":")
        changed: Mapping[str, JSON] = {"amount": 1} if decision == "amend" else {}
        ruling = Ruling(decision, by, role, "so", 8, {"method": "token"})
        held = rule(held, ruling, at=at, arguments=changed)
    return held


@pytest.mark.parametrize(
    ("decisions", "state", "approvals"),
    [
        ([], "waiting", 0),
        (["approve:ann:boss"], "waiting", 1),
        (["approve:ann:boss", "approve:bo:audit"], "approved", 2),
        (["approve:ann:boss", "approve:bo:boss"], "waiting", 1),
        (["approve:ann:boss", "approve:ann:audit"], "waiting", 1),
        (["approve:ann:boss", "approve:bo:boss", "approve:ann:audit"], "approved", 2),
        (["approve:ann:clerk", "approve:bo:audit"], "waiting", 1),
        (["approve::boss", "approve:bo:audit"], "waiting", 1),
        (["reject:ann:clerk"], "waiting", 0),
        (["reject::boss"], "waiting", 0),
        (["reject:ann:boss"], "rejected", 0),
        (["approve:ann:boss", "approve:bo:audit", "reject:cy:boss"], "rejected", 2),
        (["reject:ann:boss", "approve:ann:boss", "approve:bo:audit"], "rejected", 0),
        (["approve:ann:boss", "amend:bo:audit"], "waiting", 1),
        (["amend:bo:audit", "approve:ann:boss"], "approved", 2),
        (["expire::"], "expired", 0),
        (["approve:ann:boss", "approve:bo:audit", "expire::"], "expired", 2),
        (["expire::", "approve:ann:boss"], "expired", 0),
    ],
)
def test_decisions_change_the_state_of_a_held_call(
    decisions: list[str], state: str, approvals: int
) -> None:
    held = ruled(HELD, *decisions)
    assert (held.state, held.approvals) == (state, approvals)
    assert held.amended == any(text.startswith("amend") for text in decisions)
    assert held.arguments == ({"amount": 1} if held.amended else HELD.arguments)
    assert (held.rejection is not None) is (state == "rejected")


@pytest.mark.parametrize(
    ("at", "expires", "open_still"),
    [(199.0, 200.0, True), (200.0, 200.0, True), (200.1, 200.0, False), (9e9, None, True)],
)
def test_until_when_a_decision_counts(at: float, expires: float | None, open_still: bool) -> None:
    held = replace(HELD, expires_at=expires)
    assert held.has_expired(at) is not open_still
    assert held.is_open(at) is open_still
    assert bool(ruled(held, "approve:ann:boss", at=at).rulings) is open_still
    assert ruled(held, "expire::", at=at).state is HeldState.EXPIRED
    assert held.lasts == (100 if expires else None)


@pytest.mark.parametrize("state", HeldState)
def test_only_a_waiting_or_approved_call_can_be_decided(state: HeldState) -> None:
    is_open = state in (HeldState.WAITING, HeldState.APPROVED)
    held = replace(HELD, state=state)
    assert held.is_open(150.0) is is_open
    for decision in ("approve:ann:boss", "reject:ann:boss", "expire::"):
        assert (ruled(held, decision) != held) is is_open
    assert (objected(held)[0] is None) is is_open


# --- who may decide -------------------------------------------------------------------

EVERYBODY = People(
    persons={
        "ann": Person("Ann", ("boss",), aliases=("A-7",)),
        "bo": Person("Bo", ("deputy",)),
        "di": Person("Di", ("chief",)),
    },
    deputies=[Deputy("Bo", "Ann", "boss", 100.0, 160.0)],
    escalations={"boss": ("chief", 30.0)},
    limits={"boss": ("amount<=9",), "chief": ("amount<=5",)},
)
TOKEN = Principal("Ann", "token", "t1")
FACTS = ActionFacts({"to": {"type": "string"}, "amount": {"type": "number"}}, ("to",))


def program(entry: str, **parts: Any) -> Program:
    return Program(entry, {}, Source("h", entry, ""), "", **parts)


def objected(
    held: HeldCall = HELD,
    decision: str = "approve",
    *,
    by: str = "ann",
    role: str = "boss",
    people: People | None = None,
    metadata: Mapping[str, Any] | None = None,
    at: float = 150.0,
    who: Principal | None = None,
    arguments: Mapping[str, JSON] | None = None,
    **options: Any,
) -> tuple[str | None, Mapping[str, JSON]]:
    rules = Entitlements(people or People(), metadata or {}, Configuration(), **options)
    try:
        return None, rules.require(Vote(decision, by, role, arguments, who=who), held, at)
    except UserMistake as refused:
        return refused.diagnostics[0].code, {}


@pytest.mark.parametrize(
    ("decision", "code"),
    [
        ({}, None),
        ({"decision": "permit"}, "unknown-decision"),
        ({"decision": "expire", "by": "", "role": ""}, None),
        ({"decision": "reject"}, None),
        ({"by": " "}, "nobody"),
        ({"role": "clerk"}, "wrong-role"),
        ({"role": "audit"}, None),
        ({"decision": "amend"}, "amendment"),
        ({"arguments": {"to": "bea"}}, "amendment"),
        ({"decision": "reject", "arguments": {"to": "bea"}}, "amendment"),
        ({"decision": "amend", "arguments": {"to": "bea"}}, None),
        # Neither the model, nor who asked for it, nor who is meant in it, nor who wrote it.
        ({"by": "assistant"}, "party"),
        ({"by": "agent"}, "party"),
        ({"by": "operator"}, None),
        ({"by": "GPT", "metadata": {"model": "gpt"}}, "party"),
        ({"by": "una"}, "party"),
        ({"by": "9"}, "party"),
        ({"metadata": {"requester": "Ann"}}, "party"),
        ({"metadata": {"requester": "Bo"}}, None),
        ({"metadata": {"requester": ""}}, None),
        ({"authors": {"ann"}}, "party"),
        ({"authors": {"bo"}}, None),
        ({"people": EVERYBODY, "authors": {"a-7"}}, "party"),
        ({"people": EVERYBODY, "metadata": {"requester": "a-7"}}, "party"),
        # What the action takes.
        ({"decision": "amend", "arguments": {"to": "bea", "sum": 1}}, "unknown-argument"),
        ({"decision": "amend", "arguments": {"to": 5}}, "wrong-type"),
        ({"decision": "amend", "arguments": {"amount": 5}}, "missing-argument"),
        ({"decision": "amend", "arguments": {"to": "bea", "amount": 5}}, None),
    ],
)
def test_a_decision_is_refused_with_a_code(decision: dict[str, Any], code: str | None) -> None:
    programs = {"wire": program("wire", actions={"wire": FACTS})}
    assert objected(**decision, programs=programs)[0] == code


def test_an_action_without_declared_inputs_takes_any_arguments() -> None:
    nothing = {"wire": program("wire", actions={"wire": ActionFacts({}, ("to",))})}
    for programs in ({}, {"wire": program("wire")}, nothing):
        assert objected(decision="amend", arguments={"x": 1}, programs=programs)[0] is None


@pytest.mark.parametrize(
    ("by", "who", "name"),
    [
        ("", TOKEN, "Ann"),
        ("a-7", TOKEN, "Ann"),
        ("bo", TOKEN, None),
        ("a-7", None, "Ann"),
        ("cy", None, "cy"),
        ("cy", THE_MACHINE, "cy"),
    ],
)
def test_an_alias_is_no_second_person(by: str, who: Principal | None, name: str | None) -> None:
    if name is None:
        with pytest.raises(UserMistake, match="this is Ann's token"):
            EVERYBODY.name_of(by, who)
    else:
        assert EVERYBODY.name_of(by, who) == name


# --- guards of several programs, and the ledger ---------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "stricter"),
    [
        (Guarded("a"), Guarded("a"), Guarded("a")),
        (Guarded("a"), Guarded("a", ("r",), 1), Guarded("a", ("r",), 1)),
        (Guarded("a", ("r",), 1), Guarded("a", ("s",), 1), Guarded("a", ("r",), 1)),
        (Guarded("a", ("r",), 2), Guarded("a", ("s",), 1), Guarded("a", ("r",), 2)),
        (Guarded("a", recheck=True), Guarded("a"), Guarded("a", recheck=True)),
        (Guarded("a"), Guarded("a", recheck=True), Guarded("a", recheck=True)),
        (Guarded("a", when="x"), Guarded("a"), Guarded("a")),
        (Guarded("a", ("r",), 1, when="x"), Guarded("a", ("r",), 2, when="x"),
         Guarded("a", ("r",), 2, when="x")),
    ],
)  # fmt: skip
def test_the_stricter_of_two_guards_of_an_action_holds(
    first: Guarded, second: Guarded, stricter: Guarded
) -> None:
    programs = {
        name: program(name, guarded=(guard,)) for name, guard in (("p", first), ("q", second))
    }
    assert guarded_actions(programs) == {"a": stricter}


def event(seq: int, kind: str, payload: Mapping[str, JSON], actor: str = "runtime") -> Event:
    return Event(seq, 100.0, actor, kind, "p1", "", payload)


def held_note(**details: JSON) -> Event:
    held = {"call_id": "w", "action": "wire", "arguments": {}, "awaits": "approval", **details}
    return event(1, "note", {"name": "held_call", "details": held})


@pytest.mark.parametrize(
    ("needed", "read_as"), [(1, 1), (2, 2), (0, 1_000_000), (-1, 1_000_000), ("1", 1_000_000)]
)
def test_a_request_that_cannot_be_read_is_never_satisfied(needed: JSON, read_as: int) -> None:
    ledger = CallLedger()
    ledger.fold(held_note(needed=needed, roles=["boss"], expires_at=200))
    held = ledger.held["w"]
    assert (held.needed, held.roles, held.expires_at) == (read_as, ("boss",), 200.0)
    assert (held.amended, held.why, held.seq, held.process) == (False, "", 1, "p1")


@pytest.mark.parametrize("actor", ["model", "user", "tool"])
def test_only_the_runtime_holds_calls_and_loses_outcomes(actor: str) -> None:
    ledger = CallLedger()
    ledger.fold(held_note(needed=1)._replace(actor=actor))
    ledger.fold(event(3, "note", {"name": "outcome_unknown", "details": {"call_id": "w"}}, actor))
    ledger.fold(event(4, "note", {"name": "held_call", "details": {"call_id": 5}}))
    assert (ledger.held, ledger.unknown, ledger.seen) == ({}, {}, set())


def test_a_call_that_waits_for_the_root_is_seen_and_asks_nobody() -> None:
    ledger = CallLedger()
    ledger.fold(held_note(awaits="root"))
    assert (ledger.held, ledger.seen, ledger.made) == ({}, {"w"}, set())
    assert [ledger.fresh_id("w"), ledger.fresh_id("v")] == ["w.2", "v"]
