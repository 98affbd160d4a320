"""Four eyes are two people who proved who they are and have no part in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.audit.audit import audit_trace
from sopilot.audit.text import render_text
from sopilot.files.sign_in import sign_in
from sopilot.machine.approvals import HeldState
from sopilot.messages.errors import UserMistake
from sopilot.records.loading import register
from sopilot.records.people import THE_MACHINE, change_people, issue_token, load_people, objection
from sopilot.records.reminders import due_calls, due_lines
from sopilot.records.selection import Wanted
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import DECISION_REFUSED
from sopilot.values.json import JSON
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
        await self.change(
            "person_added", person=person, roles=list(roles), aliases=list(aliases), subjects=[]
        )
        await self.token(person, f"{person}-1")

    async def token(self, person: str, name: str, expires_at: float | None = None) -> None:
        details: dict[str, JSON] = {"person": person, "token": name, "expires_at": expires_at}
        self.tokens[name] = await issue_token(
            self.store, "token_issued", details, who=None, clock=self.clock
        )

    async def wire(self, arguments: Mapping[str, JSON] = WIRE) -> Session:
        session = await open_session(
            self.store, COUNTER, tools=CountingTools(), clock=self.clock, model="gpt",
            handbook="counter", requester="Rita Request",
        )  # fmt: skip
        await walk(session, "wire", stop_at_action="wire")
        await session.call_tool("wire", arguments, "w")
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


Case = Callable[[Office, Session], Awaitable[list[str]]]


async def two_people(here: Office, wire: Session) -> list[str]:
    return [await here.vote(wire, "Sue-1", "supervisor"), await here.vote(wire, "Ada-1", "auditor")]


async def requester(here: Office, wire: Session) -> list[str]:
    return [await here.vote(wire, "Rita Request-1", "supervisor")]


async def customer(here: Office, wire: Session) -> list[str]:
    return [
        await here.vote(wire, "", "supervisor", by="Una"),
        await here.vote(wire, "Cora-1", "auditor"),  # the customer's account is hers
    ]


async def agent(here: Office, wire: Session) -> list[str]:
    return [
        await here.vote(wire, "gpt-1", "supervisor"),
        await here.vote(wire, "", "supervisor", by="Assistant"),
    ]


async def other_spelling(here: Office, wire: Session) -> list[str]:
    return [
        await here.vote(wire, "Sue-1", "supervisor"),
        await here.vote(wire, "", "auditor", by="ＳＵＥ "),
        await here.vote(wire, "", "auditor", by="S.Upervisor"),
    ]


async def other_token(here: Office, wire: Session) -> list[str]:
    await here.token("Sue", "Sue-2")
    return [
        await here.vote(wire, "Sue-1", "supervisor"),
        await here.vote(wire, "Sue-2", "supervisor"),
    ]


async def foreign_name(here: Office, wire: Session) -> list[str]:
    return [await here.vote(wire, "Sue-1", "supervisor", by="Ada")]


async def no_such_role(here: Office, wire: Session) -> list[str]:
    return [
        await here.vote(wire, "Ben-1", "supervisor"),
        await here.vote(wire, "Sue-1", "janitor"),
    ]


async def deputy(here: Office, wire: Session) -> list[str]:
    now = here.clock.now()
    await here.change(
        "deputy_named", **{"for": "Ada"}, person="Ben", role="auditor", begin=now - 1, end=now + DAY
    )
    return [await here.vote(wire, "Sue-1", "supervisor"), await here.vote(wire, "Ben-1", "auditor")]


async def deputy_out_of_date(here: Office, wire: Session) -> list[str]:
    now = here.clock.now()
    await here.change(
        "deputy_named", **{"for": "Ada"}, person="Ben", role="auditor", begin=now - DAY, end=now
    )
    return [await here.vote(wire, "Ben-1", "auditor")]


async def limit_exceeded(here: Office, wire: Session) -> list[str]:
    await here.change("limit_set", role="supervisor", conditions=["amount<=1"])
    return [await here.vote(wire, "Sue-1", "supervisor")]


async def rejected_beyond_the_limit(here: Office, wire: Session) -> list[str]:
    """Saying no lets nothing happen; who has no say, or a part in it, says neither yes nor no."""
    await here.change("limit_set", role="supervisor", conditions=["amount<=1", "value<=1"])
    return [
        await here.vote(wire, "Ben-1", "supervisor", "reject"),
        await here.vote(wire, "", "supervisor", "reject", by="Una"),
        await here.vote(wire, "Sue-1", "supervisor", "reject"),
    ]


async def limit_of_another_argument(here: Office, wire: Session) -> list[str]:
    await here.change("limit_set", role="supervisor", conditions=["value<=1000000"])
    return [await here.vote(wire, "Sue-1", "supervisor")]


async def amended_beyond_the_limit(here: Office, wire: Session) -> list[str]:
    await here.change("limit_set", role="supervisor", conditions=["amount<=100"])
    return [
        await here.vote(wire, "Sue-1", "supervisor", "amend", arguments={**WIRE, "amount": 101})
    ]


async def amended_after_approval(here: Office, wire: Session) -> list[str]:
    return [
        await here.vote(wire, "Sue-1", "supervisor"),
        await here.vote(wire, "Ada-1", "auditor", "amend", arguments={**WIRE, "amount": 2}),
        await here.vote(wire, "Sue-1", "supervisor"),
    ]


async def expired(here: Office, wire: Session) -> list[str]:
    here.clock.time += 3_601
    return [await here.vote(wire, "Sue-1", "supervisor")]


async def revoked_token(here: Office, wire: Session) -> list[str]:
    await here.change("token_revoked", token="Sue-1")
    return [await here.vote(wire, "Sue-1", "supervisor")]


async def token_out_of_date(here: Office, wire: Session) -> list[str]:
    await here.token("Sue", "short", expires_at=here.clock.now())
    return [await here.vote(wire, "short", "supervisor")]


async def removed_person(here: Office, wire: Session) -> list[str]:
    await here.change("person_removed", person="Sue")
    return [await here.vote(wire, "Sue-1", "supervisor")]


async def approval_taken_back(here: Office, wire: Session) -> list[str]:
    return [
        *await two_people(here, wire),
        await here.vote(wire, "Sue-1", "supervisor", "reject"),
    ]


async def escalated(here: Office, wire: Session) -> list[str]:
    await here.change("escalation_set", role="supervisor", to="head", before_seconds=600)
    early = await here.vote(wire, "Hal-1", "supervisor")
    here.clock.time += 3_100
    return [early, await here.vote(wire, "Hal-1", "supervisor")]


async def demanded(here: Office, wire: Session) -> list[str]:
    await here.change("demanded", what="identity", on=True)
    return [
        await here.vote(wire, "", "supervisor", by="Sue"),
        await here.vote(wire, "Sue-1", "supervisor"),
    ]


MATRIX: list[tuple[Case, list[str]]] = [
    (two_people, ["waiting", "approved"]),
    (requester, ["party"]),
    (customer, ["party", "party"]),
    (agent, ["party", "party"]),
    (other_spelling, ["waiting", "waiting", "approved-twice"]),
    (other_token, ["waiting", "approved-twice"]),
    (foreign_name, ["another-name"]),
    (no_such_role, ["not-entitled", "wrong-role"]),
    (deputy, ["waiting", "approved"]),
    (deputy_out_of_date, ["not-entitled"]),
    (limit_exceeded, ["beyond-limit"]),
    (rejected_beyond_the_limit, ["not-entitled", "party", "rejected"]),
    (limit_of_another_argument, ["beyond-limit"]),
    (amended_beyond_the_limit, ["beyond-limit"]),
    (amended_after_approval, ["waiting", "waiting", "approved"]),
    (expired, ["decided"]),
    (revoked_token, ["revoked-token"]),
    (token_out_of_date, ["expired-token"]),
    (removed_person, ["revoked-token"]),
    (approval_taken_back, ["waiting", "approved", "rejected"]),
    (escalated, ["not-entitled", "waiting"]),
    (demanded, ["unauthenticated", "waiting"]),
]


@pytest.mark.parametrize(
    ("given", "parties"),
    [
        ({"payer": 4711}, ["Nora"]),
        ({"about": {"payers": ["una", {"name": "ＬＥＥ"}]}}, ["Lee"]),
        ({"note": "for Lee and 4711", "ok": True}, []),
    ],
)
def test_a_customer_is_named_anywhere_in_the_arguments(
    given: dict[str, JSON], parties: list[str]
) -> None:
    """As a number, too, and in lists and objects."""

    async def refused() -> list[str]:
        here = await office()
        wire = await here.wire()
        await here.add("Nora", "supervisor", aliases=("4711",))
        await here.add("Lee", "supervisor")
        people, held = await load_people(here.store), wire.ledger.held["w"]
        found = []
        for by in ("Nora", "Lee"):
            problem, _ = objection(
                people, wire.metadata, wire.configuration, replace(held, arguments=given),
                "approve", by=by, role="supervisor", arguments=None, who=None, at=0.0,
            )  # fmt: skip
            if problem is not None and problem.code == "party":
                found.append(by)
        return found

    assert asyncio.run(refused()) == parties


IN_THE_TRACE = {
    "approved-twice", "beyond-limit", "not-entitled", "party", "unauthenticated",
}  # fmt: skip


@pytest.mark.parametrize(("case", "wanted"), MATRIX, ids=[one.__name__ for one, _ in MATRIX])
async def test_the_four_eyes_matrix(case: Case, wanted: list[str]) -> None:
    here = await office()
    wire = await here.wire()
    assert await case(here, wire) == wanted
    refused = [
        one.event.payload["details"]["code"]
        for one in wire.events
        if one.event.kind == "note" and one.event.payload["name"] == DECISION_REFUSED
    ]
    assert refused == [code for code in wanted if code in IN_THE_TRACE]
    await wire.reload()  # the trace alone says the same
    approved = wire.ledger.held["w"].state is HeldState.APPROVED
    assert approved == (wanted[-1] == "approved")


async def test_how_people_proved_who_they_are_is_shown_everywhere() -> None:
    here = await office()
    wire = await here.wire()
    await here.vote(wire, "Sue-1", "supervisor")
    await here.vote(wire, "", "auditor", by="Otto")
    await wire.run_held("w")
    found = await register(here.store, Wanted())
    (entry,) = found.entries(None)
    assert entry.approvers == ("Sue (supervisor, token)", "Otto (auditor, unauthenticated)")
    report = audit_trace(wire.programs.programs, wire.events)
    text = render_text(report)
    assert "approved by Sue as supervisor (token)" in text
    assert "approved by Otto as auditor (unauthenticated)" in text
    page = render_audit(report, [item.event for item in wire.events])
    assert "approved by Otto as auditor (unauthenticated)" in page
    assert "approved by Sue as supervisor (token)" in page


async def test_a_machines_own_approval_is_marked() -> None:
    here = Office()
    wire = await here.wire()
    for role in ("supervisor", "auditor"):
        await wire.decide("approve", "w", by=f"the {role}", role=role, who=THE_MACHINE)
    await wire.run_held("w")
    (entry,) = (await register(here.store, Wanted())).entries(None)
    assert entry.approvers[0] == "the supervisor (supervisor, the machine itself)"
    assert "(the runtime itself)" in render_text(audit_trace(wire.programs.programs, wire.events))


async def test_only_an_administrator_changes_people_once_there_is_one() -> None:
    here = await office()
    await here.add("Root", "administrator")
    with pytest.raises(UserMistake, match="only an administrator"):
        await here.add("Eve", "supervisor")
    sue = await sign_in(here.store, here.tokens["Sue-1"], clock=here.clock)
    with pytest.raises(UserMistake, match="only an administrator"):
        await change_people(here.store, "demanded", {"what": "identity", "on": True},
                            who=sue, clock=here.clock)  # fmt: skip
    assert (await load_people(here.store)).demands == set()


async def test_people_are_reminded_once_and_again_when_it_escalates() -> None:
    here = await office()
    await here.change("escalation_set", role="supervisor", to="head", before_seconds=600)
    wire = await here.wire()
    await here.vote(wire, "Ada-1", "auditor")
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
