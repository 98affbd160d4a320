"""Sixty sessions, each judged by every kind of reader: one verdict, or *cannot be judged*."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from small_desks import programs_of
from sopilot.audit.findings import Unjudgeable
from sopilot.audit.report import Report, batch
from sopilot.audit.text import render_text, verdict_words
from sopilot.machine.automation import Automation
from sopilot.machine.secrets import shown_events
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.protocols import SystemClock, ToolResult, ToolSchema
from sopilot.records.audits import keep_audit
from sopilot.records.bundle_export import bundle_files
from sopilot.records.loading import export_trace
from sopilot.records.privacy import erase_contents
from sopilot.records.pruning import prune
from sopilot.records.sealing import seal_store
from sopilot.records.store import Settings, Store
from sopilot.runner.audit_inputs import file_input, session_input
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.encrypted import KeyFolder, encrypted
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Complete, Fail, Return, Start
from sopilot.trace.files import write_trace
from sopilot.trace.signing import generate_key
from sopilot.web.audit_page import render_audit

KEY = generate_key()
BOOK = """
handbook: payouts
actions:
  read_account: {input: {user: string}, read_only: true}
  screen: {input: {user: string}, read_only: true}
  pay:
    input: {user: string, amount: integer}
    irreversible: true
    confirm: false
    approval: {roles: [manager], when: amount > 1000}
predicates:
  funded(user, amount):
    says: The account of {user} has {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
  sanctioned(user):
    says: The customer {user} is on a sanctions list.
    verify: screen(user)
    verdict: result.hit
procedures:
  pay: {requires: [funded(user, amount), {not: sanctioned(user)}]}
"""
PROGRAMS = programs_of(BOOK)
PRIVATE = Settings(
    private=True,
    columns=frozenset({"amount"}),
    automation=Automation(enter_calls=True, machine_verdicts=True),
)


@dataclass
class Bank:
    """Knows what was really paid."""

    balance: int = 5_000
    screening: Mapping[str, Any] = field(default_factory=lambda: {"hit": False})
    paid: list[int] = field(default_factory=list)
    breaks: bool = False

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        if name == "read_account":
            return ToolResult(True, {"balance": self.balance})
        if name == "screen":
            return ToolResult(True, dict(self.screening))
        self.paid.append(int(arguments["amount"]))
        if self.breaks:
            raise ConnectionError("gone")
        return ToolResult(True, {"paid": True})


async def checked(session: Session, user: str, amount: int) -> None:
    await session.user_said(f"This is {user}, pay me {amount}.")
    await session.operate(Start("pay", {"user": user, "amount": amount}))
    await session.call_tool("read_account", {"user": user})
    await session.call_tool("screen", {"user": user})


async def executed(session: Session, bank: Bank, user: str) -> None:
    await checked(session, user, 100)
    await session.call_tool("pay", {"user": user, "amount": 100}, "c")
    await session.operate(Complete("done"))


async def decided(
    session: Session,
    user: str,
    amount: int,
    decision: str,
    arguments: dict[str, Any] | None = None,
    *,
    unscreened: bool = False,
) -> None:
    await checked(session, user, amount)
    if unscreened:  # the answer doesn't tell, and the model claims that there is no hit
        await session.operate(Return(False))
    await session.call_tool("pay", {"user": user, "amount": amount}, "c")
    (held,) = session.held_calls
    await session.decide(
        decision, "c", by="Mia", role=held.roles[0], reason="seen", arguments=arguments
    )
    if decision != "reject":
        await session.run_held("c")
        await session.operate(Complete("done"))


async def approved(session: Session, bank: Bank, user: str) -> None:
    await decided(session, user, 2_000, "approve")


async def amended(session: Session, bank: Bank, user: str) -> None:
    await decided(session, user, 2_000, "amend", {"user": user, "amount": 1_500})


async def overridden(session: Session, bank: Bank, user: str) -> None:
    bank.screening = {}
    await decided(session, user, 3_000, "approve", unscreened=True)
    assert bank.paid == [3_000]


async def refused(session: Session, bank: Bank, user: str) -> None:
    bank.balance = 1
    await checked(session, user, 100)
    await session.operate(Fail("not enough"))


async def waiting(session: Session, bank: Bank, user: str) -> None:
    await checked(session, user, 2_000)
    await session.call_tool("pay", {"user": user, "amount": 2_000}, "c")


async def crashed(session: Session, bank: Bank, user: str) -> None:
    bank.breaks = True
    await checked(session, user, 100)
    await session.call_tool("pay", {"user": user, "amount": 100}, "c")


async def given_up(session: Session, bank: Bank, user: str) -> None:
    """A refusal without a ground: one real finding."""
    await checked(session, user, 100)
    await session.operate(Fail("I would rather not"))


async def odd_answer(session: Session, bank: Bank, user: str) -> None:
    """A tool's own data has the form of a withheld value, and the call is judged all the same."""
    bank.screening = {"$ref": "0" * 64, "bytes": 12}
    await decided(session, user, 3_000, "approve", unscreened=True)


KINDS: Mapping[str, Callable[[Session, Bank, str], Awaitable[None]]] = {
    one.__name__: one
    for one in (
        executed, approved, amended, overridden, refused, waiting, crashed, given_up, odd_answer,
    )
}  # fmt: skip
EACH = 7


@dataclass
class Made:
    folder: Path
    kinds: dict[str, str]

    bare: MemoryStore = field(default_factory=MemoryStore)

    def store(self, keys: str | None = "keys") -> Store:
        return encrypted(self.bare, KeyFolder(self.folder / keys)) if keys else self.bare


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    found = Made(tmp_path_factory.mktemp("readers"), {})

    async def make() -> None:
        store = found.store()
        for number in range(EACH):
            for kind, play in KINDS.items():
                bank = Bank()
                session = await open_session(store, PROGRAMS, tools=bank, settings=PRIVATE)
                await play(session, bank, f"zelda-{kind}-{number}")
                found.kinds[session.id] = kind
                await session.release()

    asyncio.run(make())
    assert len(found.kinds) >= 60
    return found


def read(made: Made, store: Store, *, masked: bool = False) -> dict[str, Report]:
    async def every() -> dict[str, Report]:
        reports: dict[str, Report] = {}
        known: dict[str, str] = {}
        for session_id in made.kinds:
            given = await session_input(
                store, session_id, handbook=None, goal=None, masked=masked, known=known
            )
            (audited,) = given.audit()
            reports[session_id] = audited.report
            if masked and len(reports) <= len(KINDS):
                assert "zelda" not in render_audit(audited.report, audited.events)
            assert render_text(audited.report).split(": ", 1)[0] == f"session {session_id}"
        return reports

    return asyncio.run(every())


@pytest.fixture(scope="module")
def full(made: Made) -> dict[str, Report]:
    return read(made, made.store())


def verdict(report: Report) -> tuple[bool | None, list[tuple[str, int]], list[int]]:
    found = [(one.code, one.seq) for one in report.findings if one.severity is not Severity.NOTE]
    return report.clean, sorted(found), [one.seq for one in report.overrides]


def equal_or_not_judged(
    full: Mapping[str, Report], other: Mapping[str, Report], reason: Unjudgeable
) -> int:
    """How many were judged. Of the others nothing is said, and nothing is counted."""
    for session_id, report in other.items():
        if report.unjudged is None:
            assert verdict(report) == verdict(full[session_id])
        else:
            assert report.unjudged.reason is reason
            assert verdict(report) == (None, [], [])
            assert report.checks == ()
            assert report.as_json()["clean"] is None
            assert "cannot be judged" in render_text(report)
            assert verdict_words(report).startswith("cannot be judged")
    card, judged = batch(other.values()), sum(one.unjudged is None for one in other.values())
    assert card.sessions == judged
    assert sum(card.not_judged.values()) == len(other) - judged
    return judged


def test_with_full_rights_every_session_has_its_verdict(
    made: Made, full: dict[str, Report]
) -> None:
    for session_id, report in full.items():
        kind = made.kinds[session_id]
        assert report.not_judged == (), kind
        codes = {code for code, _ in verdict(report)[1]}
        expected = {"given_up": {"refusal-without-cause"}, "crashed": {"unknown-outcome"}}
        assert codes == expected.get(kind, set()), (kind, render_text(report))
        override = kind in ("overridden", "odd_answer")
        assert bool(report.overrides) is override, kind
        assert ("override" in render_text(report)) is override
        assert bool(report.as_json()["overrides"]) is override
        page = render_audit(report)
        assert ("Mia allowed" in page) is override
        assert not override or ">clean<" not in page


def test_without_rights(made: Made, full: dict[str, Report]) -> None:
    other = read(made, made.store(), masked=True)
    assert equal_or_not_judged(full, other, Unjudgeable.NO_RIGHTS) == 0


@pytest.mark.parametrize("keys", [None, "other-keys"])
def test_without_keys(made: Made, full: dict[str, Report], keys: str | None) -> None:
    other = read(made, made.store(keys=keys))
    assert equal_or_not_judged(full, other, Unjudgeable.NO_KEY) == 0


@pytest.mark.parametrize("payloads", [True, False])
@pytest.mark.parametrize("bundled", [True, False])
def test_from_an_exported_trace_or_bundle(
    made: Made, full: dict[str, Report], tmp_path: Path, payloads: bool, bundled: bool
) -> None:
    async def export() -> dict[str, bytes]:
        store = made.store()
        if bundled:
            await seal_store(store, KEY, at=SystemClock().now())
            return await bundle_files(store, 0.0, 1e11, payloads=payloads)
        return {
            f"traces/{each}.jsonl": write_trace(
                await export_trace(store, each, payloads=payloads)
            ).encode()
            for each in made.kinds
        }

    files = asyncio.run(export())
    other = {}
    for session_id in made.kinds:
        file = tmp_path / f"{session_id}.jsonl"
        file.write_bytes(files[f"traces/{session_id}.jsonl"])
        (audited,) = file_input(str(file), handbook=None, goal=None).audit()
        # A file doesn't say whether its session goes on.
        if made.kinds[session_id] not in ("waiting", "crashed"):
            other[session_id] = audited.report
    judged = equal_or_not_judged(full, other, Unjudgeable.NOT_IN_TRACE)
    assert judged == (len(other) if payloads else 0)


def test_as_a_foreign_transcript(made: Made, full: dict[str, Report], tmp_path: Path) -> None:
    """A list of messages shows less: whatever it leaves open isn't held against anybody."""
    book = tmp_path / "payouts.yaml"
    book.write_text(BOOK, "utf-8")

    async def messages(session_id: str) -> list[dict[str, Any]]:
        store, found = made.store(), list[dict[str, Any]]()
        trace = await export_trace(store, session_id, payloads=True)
        for event in shown_events(trace.events, trace.payloads, None):
            it: Any = event.payload
            if event.kind == "user_said":
                found.append({"role": "user", "content": it["text"]})
            elif event.kind == "domain_call":
                call = {"name": it["action"], "arguments": json.dumps(it["arguments"])}
                calls = [{"id": it["call_id"], "type": "function", "function": call}]
                found.append({"role": "assistant", "content": None, "tool_calls": calls})
            elif event.kind == "domain_result":
                text = json.dumps(it["value"])
                found.append({"role": "tool", "tool_call_id": it["call_id"], "content": text})
        return found

    judged = set[str]()
    for session_id, report in full.items():
        file = tmp_path / f"{session_id}.json"
        file.write_text(json.dumps(asyncio.run(messages(session_id))), "utf-8")
        given = file_input(str(file), handbook=str(book), goal="pay")
        other = given.audit()[0].report
        kind = made.kinds[session_id]
        if other.clean is not None:
            assert other.clean is report.clean, (kind, render_text(other))
            judged.add(kind)
    assert judged == {"executed"}


def test_after_erasure_and_pruning_the_kept_verdict_counts(
    made: Made, full: dict[str, Report], tmp_path: Path
) -> None:
    async def case() -> None:
        store, clock = made.store(), SystemClock()
        kept = list(made.kinds)[::2]
        for session_id in kept:
            await keep_audit(store, full[session_id], release="1", clock=clock)
        # Who may not judge keeps nothing.
        given = await session_input(
            store, list(made.kinds)[1], handbook=None, goal=None, masked=True
        )
        with pytest.raises(UserMistake, match="can't be judged"):
            await keep_audit(store, given.audit()[0].report, release="1", clock=clock)

    asyncio.run(case())
    masked = read(made, made.store(), masked=True)
    half = (len(made.kinds) + 1) // 2
    assert equal_or_not_judged(full, masked, Unjudgeable.NO_RIGHTS) == half
    assert all(one.verdict_of for one in masked.values() if one.unjudged is None)

    async def erase() -> None:
        store = made.store()
        records = [await store.record(one) for one in made.kinds]
        done = await erase_contents(
            store, records, "asked for", unfinished=True, who=None, clock=SystemClock()
        )
        assert len(done.erased) == len(made.kinds)

    asyncio.run(erase())
    erased = read(made, made.store())
    assert equal_or_not_judged(full, erased, Unjudgeable.ERASED) == half

    async def delete() -> int:
        store = made.store()
        done = await prune(store, days=-1, why="period", clock=SystemClock())
        return len(done.pruned)

    assert asyncio.run(delete()) > 20
    pruned = read(made, made.store())
    reasons = {one.unjudged.reason for one in pruned.values() if one.unjudged is not None}
    assert reasons == {Unjudgeable.ERASED, Unjudgeable.PRUNED}
    for session_id, report in pruned.items():
        assert report.unjudged is not None or verdict(report) == verdict(full[session_id])
