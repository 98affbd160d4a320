"""Four eyes are two people who proved who they are and have no part in it: also against somebody
who has read the rules, by amending and by spelling."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from counter_desk import ERRANDS, HandClock, walk
from counter_sessions import opened
from sopilot.audit.audit import audit_trace
from sopilot.audit.text import render_text
from sopilot.machine.call_ledger import HeldState
from sopilot.machine.state import CallRecord, Configuration
from sopilot.messages.errors import UserMistake
from sopilot.records.entitlements import REFUSED, Entitlements, Vote
from sopilot.records.loading import load, register
from sopilot.records.people import THE_MACHINE, People, change_people, issue_token, load_people
from sopilot.records.reminders import due_calls, due_lines
from sopilot.records.selection import Wanted
from sopilot.runner.sign_in import sign_in
from sopilot.session.queued_decisions import decide_or_queue
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import DECISION_REFUSED
from sopilot.values.json import JSON, look_the_same, same_name
from sopilot.web.audit_page import render_audit

WIRE = ERRANDS["wire"]
DAY = 86_400.0


class Office:
    """A store with people in it and a wire that waits for two of three roles."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), HandClock()
        self.tokens: dict[str, str] = {}

    async def change(self, name: str, **details: JSON) -> None:
        await change_people(self.store, name, details, who=None, clock=self.clock)

    async def add(self, person: str, *roles: str, aliases: tuple[str, ...] = ()) -> None:
        lists: dict[str, JSON] = {"roles": list(roles), "aliases": list(aliases), "subjects": []}
        await self.change("person_added", person=person, **lists)
        await self.token(person, person)

    async def token(self, person: str, name: str, expires_at: float | None = None) -> None:
        details: dict[str, JSON] = {"person": person, "token": name, "expires_at": expires_at}
        self.tokens[name] = await issue_token(
            self.store, "token_issued", details, who=None, clock=self.clock
        )

    async def wire(self) -> Session:
        session = await opened(self.store, clock=self.clock, model="gpt",
            handbook="counter", requester="Rita Request",
        )  # fmt: skip
        await walk(session, "wire", stop_at_action="wire")
        await session.call_tool("wire", WIRE, "w")
        return session

    async def vote(
        self, session: Session, token: str, role: str, decision: str = "approve", by: str = "",
        arguments: Mapping[str, JSON] | None = None,
    ) -> str:  # fmt: skip
        """The state of the call then, or the code of what was refused."""
        try:
            who = None
            if token:
                who = await sign_in(self.store, self.tokens[token], clock=self.clock)
            held = await session.decide(
                decision, "w", by=by, role=role, arguments=arguments, who=who
            )
        except UserMistake as refused:
            return refused.diagnostics[0].code
        return str(held.state)


async def office() -> Office:
    here = Office()
    await here.add("Sue", "supervisor", aliases=("s.upervisor",))
    await here.add("Ada", "auditor")
    await here.add("Ben")
    await here.add("Hal", "head")
    await here.add("Rita Request", "supervisor")
    await here.add("Cora", "auditor", "supervisor", aliases=("una",))
    await here.add("gpt", "supervisor")
    return here


Step = Callable[[Office, Session], Awaitable[str | None]]


def vote(token: str, role: str, decision: str = "approve", by: str = "", **amended: JSON) -> Step:
    arguments = {**WIRE, **amended} if amended else None
    return lambda here, wire: here.vote(wire, token, role, decision, by, arguments)


def change(name: str, **details: JSON) -> Step:
    return lambda here, wire: here.change(name, **details)


def deputy(begin: float, end: float) -> Step:
    """Ben stands for Ada; the times count from now."""

    async def step(here: Office, wire: Session) -> None:
        now = here.clock.now()
        times = {"begin": now + begin, "end": now + end}
        await here.change("deputy_named", **{"for": "Ada"}, person="Ben", role="auditor", **times)

    return step


def later(seconds: float) -> Step:
    async def step(here: Office, wire: Session) -> None:
        here.clock.time += seconds

    return step


def token_of_sue(name: str, *, expired: bool = False) -> Step:
    async def step(here: Office, wire: Session) -> None:
        await here.token("Sue", name, here.clock.now() if expired else None)

    return step


def limit(*conditions: str) -> Step:
    return change("limit_set", role="supervisor", conditions=list(conditions))


SUE, ADA = vote("Sue", "supervisor"), vote("Ada", "auditor")
MATRIX: dict[str, tuple[list[Step], list[str]]] = {
    "two people": ([SUE, ADA], ["waiting", "approved"]),
    "the requester": ([vote("Rita Request", "supervisor")], ["party"]),
    "the customer": (
        [vote("", "supervisor", by="Una"), vote("Cora", "auditor")],  # her account
        ["party", "party"],
    ),
    "the agent": (
        [vote("gpt", "supervisor"), vote("", "supervisor", by="Assistant")],
        ["party", "party"],
    ),
    "another spelling": (
        [SUE, vote("", "auditor", by="ＳＵＥ "), vote("", "auditor", by="S.Upervisor")],
        ["waiting", "waiting", "approved-twice"],
    ),
    "another token": (
        [token_of_sue("Sue-2"), SUE, vote("Sue-2", "supervisor")],
        ["waiting", "approved-twice"],
    ),
    "no such role": (
        [vote("Ben", "supervisor"), vote("Sue", "janitor")],
        ["not-entitled", "wrong-role"],
    ),
    "a deputy": ([deputy(0, DAY), SUE, vote("Ben", "auditor")], ["waiting", "approved"]),
    "a deputy too early": ([deputy(1, DAY), vote("Ben", "auditor")], ["not-entitled"]),
    "a deputy no more": ([deputy(-DAY, 0), vote("Ben", "auditor")], ["not-entitled"]),
    "the last amount within the limit": ([limit(f"amount<={WIRE['amount']}"), SUE], ["waiting"]),
    "an amount that isn't there": ([limit("amuont<=1"), SUE], ["beyond-limit"]),
    "a limit": ([limit("amount<=1"), SUE], ["beyond-limit"]),
    # Saying no lets nothing happen; without a say, or with a part in it, nobody says either.
    "rejected beyond the limit": (
        [
            limit("amount<=1", "value<=1"), vote("Ben", "supervisor", "reject"),
            vote("", "supervisor", "reject", by="Una"), vote("Sue", "supervisor", "reject"),
        ],
        ["not-entitled", "party", "rejected"],
    ),
    "amended beyond the limit": (
        [limit("amount<=100"), vote("Sue", "supervisor", "amend", amount=101)],
        ["beyond-limit"],
    ),
    "amended after approval": (
        [SUE, vote("Ada", "auditor", "amend", amount=2), SUE],
        ["waiting", "waiting", "approved"],
    ),
    "a revoked token": ([change("token_revoked", token="Sue"), SUE], ["revoked-token"]),
    "an expired token": (
        [token_of_sue("short", expired=True), vote("short", "supervisor")],
        ["expired-token"],
    ),
    "a removed person": ([change("person_removed", person="Sue"), SUE], ["revoked-token"]),
    "escalated": (
        [
            change("escalation_set", role="supervisor", to="head", before_seconds=600),
            vote("Hal", "supervisor"), later(2_999), vote("Hal", "supervisor"),
            later(1), vote("Hal", "supervisor"),
        ],
        ["not-entitled", "not-entitled", "waiting"],
    ),
    "identity is demanded": (
        [change("demanded", what="identity", on=True), vote("", "supervisor", by="Sue"), SUE],
        ["unauthenticated", "waiting"],
    ),
    **{
        # An amendment is an approval: who is meant in it is a party to the call.
        f"amended in favour of {payee}": (
            [
                vote("Sue", "supervisor", "amend", username=payee),
                vote("Ada", "auditor", "amend", username=payee), SUE,
            ],
            ["party", "waiting", "party"],
        )
        for payee in ("Sue", "ＳＵＥ", "s.upervisor")
    },
}  # fmt: skip


@pytest.mark.parametrize(("steps", "answers"), MATRIX.values(), ids=MATRIX.keys())
async def test_the_four_eyes_matrix(steps: list[Step], answers: list[str]) -> None:
    here = await office()
    wire = await here.wire()
    found = [answer for step in steps if (answer := await step(here, wire)) is not None]
    assert found == answers
    refused = [
        one.event.payload["details"]["code"]
        for one in wire.events
        if one.event.kind == "note" and one.event.payload["name"] == DECISION_REFUSED
    ]
    assert refused == [code for code in answers if code in REFUSED]
    loaded = await load(here.store, wire.id)  # the trace alone says the same
    approved = loaded.ledger.held["w"].state is HeldState.APPROVED
    assert approved == (answers[-1] == "approved")


@pytest.mark.parametrize(
    ("arguments", "parties"),
    [
        ({"payer": 4711}, ["Nora"]),
        ({"about": {"payers": ["una", {"name": "ＬＥＥ"}]}}, ["Lee"]),
        ({"note": "for Lee and 4711", "ok": True}, []),
        ({"to": {"Nora": 100}}, ["Nora"]),
        ({"payer": 4711.0}, ["Nora"]),
        ({"payer": "٤٧١١"}, ["Nora"]),
        ({"payer": "N\u3164ora"}, ["Nora"]),
        ({"payer": "No\u034fra"}, ["Nora"]),
        ({"payer": "Nora\ufe0f"}, ["Nora"]),
        ({"payer": "N\x08ora\x00"}, ["Nora"]),
    ],
    ids=ascii,
)
async def test_a_customer_is_named_anywhere_however_it_is_written(
    arguments: dict[str, Any], parties: list[str]
) -> None:
    here = await office()
    wire = await here.wire()
    await here.add("Nora", "supervisor", aliases=("4711",))
    await here.add("Lee", "supervisor")
    people, held = await load_people(here.store), wire.ledger.held["w"]
    rules = Entitlements(people, wire.metadata, wire.configuration)
    for by in ("Nora", "Lee"):
        vote = Vote("approve", by, "supervisor")
        with pytest.raises(UserMistake, match="party") if by in parties else nullcontext():
            rules.require(vote, replace(held, arguments=arguments), 0.0)


async def test_an_approval_that_was_left_is_for_the_arguments_that_were_seen() -> None:
    """Whoever runs the session takes up an amendment first that nobody else could see yet."""
    here = await office()
    wire = await here.wire()
    votes: list[tuple[str, str, str, dict[str, JSON] | None]] = [
        ("amend", "Ada", "auditor", {**WIRE, "amount": 9_000}),
        ("approve", "Sue", "supervisor", None),
    ]
    for decision, token, role, arguments in votes:
        who = await sign_in(here.store, here.tokens[token], clock=here.clock)
        shown, _, left = await decide_or_queue(
            here.store, wire.id, decision, "w", by="", role=role, arguments=arguments, who=who,
            clock=here.clock,
        )  # fmt: skip
        assert left
        assert shown.arguments["amount"] == WIRE["amount"]  # what they saw
    await wire.take_decisions()
    held = wire.ledger.held["w"]
    assert (held.arguments["amount"], held.state) == (9_000, HeldState.WAITING)
    assert [one.by for one in held.rulings] == ["Ada"]
    refused = [one.event.payload for one in wire.events if one.event.kind == "note"]
    assert refused[-1]["details"]["code"] == "amended-since"


async def test_how_people_proved_who_they_are_is_shown_everywhere() -> None:
    here = await office()
    wire = await here.wire()
    await here.vote(wire, "Sue", "supervisor")
    await here.vote(wire, "", "auditor", by="Otto")
    await wire.run_held("w")
    (entry,) = (await register(here.store, Wanted())).entries(None)
    assert entry.approvers == ("Sue (supervisor, token)", "Otto (auditor, unauthenticated)")
    report = audit_trace(wire.programs.programs, wire.events)
    text, page = render_text(report), render_audit(report, [item.event for item in wire.events])
    for shown in (text, page):
        assert "approved by Sue as supervisor (token)" in shown
    assert "approved by Otto as auditor (unauthenticated)" in text
    assert "approved by Otto as auditor (unauthenticated)" in page
    alone = Office()
    wire = await alone.wire()
    for role in ("supervisor", "auditor"):
        await wire.decide("approve", "w", by=f"the {role}", role=role, who=THE_MACHINE)
    (entry,) = (await register(alone.store, Wanted())).entries(None)
    assert entry.approvers[0] == "the supervisor (supervisor, the machine itself)"
    assert "(the runtime itself)" in render_text(audit_trace(wire.programs.programs, wire.events))


async def test_people_are_reminded_once_and_again_when_it_escalates() -> None:
    here = await office()
    await here.change("escalation_set", role="supervisor", to="head", before_seconds=600)
    wire = await here.wire()
    await here.vote(wire, "Ada", "auditor")
    assert await due_calls(here.store, 1, clock=here.clock) == []
    (one,) = await due_calls(here.store, 60, once=True, clock=here.clock)
    assert (one.call_id, one.approvals, one.needed, one.escalated) == ("w", 1, 2, {})
    assert "Hal" not in one.people["supervisor"]
    assert await due_calls(here.store, once=True, clock=here.clock) == []
    here.clock.time += 3_100
    (again,) = await due_calls(here.store, once=True, clock=here.clock)
    assert again.escalated == {"supervisor": "head"}
    assert "Hal" in again.people["supervisor"]
    assert "supervisor, or head in its place" in "\n".join(due_lines([again]))
    assert await due_calls(here.store, once=True, clock=here.clock) == []
    here.clock.time += 1_000
    assert await due_calls(here.store, clock=here.clock) == []


def test_who_wrote_the_rules_does_not_say_how_a_call_ended() -> None:
    pending = CallRecord(3, "c", "wire", {"to": "una"})
    with pytest.raises(UserMistake, match="party"):
        Entitlements(People(), {}, Configuration(), {"ada"}).require_witness(
            pending, "ＡＤＡ", None
        )


def test_capitals_forms_and_hidden_signs_make_no_other_name() -> None:
    """Greek letters come apart when they are folded, Turkish ones keep a dot."""
    letters = [*map(chr, range(0x20, 0x2100)), "ﬃ", "Ａ", "ﾊ\uff9e"]
    for letter in letters:
        name = f"a{letter}b"
        for case in (name, name.upper(), name.lower(), name.title()):
            for form in ("NFC", "NFD", "NFKC", "NFKD"):
                assert same_name(unicodedata.normalize(form, case)) == same_name(name), ascii(name)
    for sign in ("\u200b", "\u034f", "\u3164", "\uffa0", "\ufe0f", "\u115f", "\x07", "\U000e0101"):
        assert look_the_same("Ada", f"A{sign}da"), ascii(sign)
        assert same_name(f"A{sign}da") == "ada", ascii(sign)
    assert not look_the_same("a\nb", "ab")
