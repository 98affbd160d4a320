"""Journals: audits, erasures and prunings are recorded in chains beside the sessions."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import HandClock, walk
from counter_sessions import opened, waiting_wire
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, ScoreCard
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import RunEnded, StoreCorrupt, TraceBroken, UserMistake
from sopilot.records.audits import differences, keep_audit, kept_audits, load_deviations
from sopilot.records.journal import entries, write
from sopilot.records.log import PREFIX, is_journal
from sopilot.records.people import Principal
from sopilot.records.privacy import change_policy, erase_contents, erase_wanted
from sopilot.records.pruning import prune
from sopilot.records.store import Settings
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, genesis, seal_all
from sopilot.trace.events import Event
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON

PRIVATE = Settings(private=True)
DAY = 86_400.0


async def renamed(store: MemoryStore, name: str, goal: str = "rename", **options: Any) -> Session:
    """A session that carried its goal out and was released."""
    session = await opened(store, session_id=name, **options)
    await walk(session, goal)
    await session.release()
    return session


# --- a journal ------------------------------------------------------------------------


async def test_journals_are_chained_and_are_no_sessions(
    store: MemoryStore, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = PREFIX + "diary"
    assert await entries(store, "diary") == []
    assert await write(store, "diary", "said", {"a": 1}, clock=clock) == 0
    clock.advance(5)
    assert await write(store, "diary", "heard", {}, clock=clock, beside={"b": 2}) == 1
    first, second = await entries(store, "diary")
    assert (first.number, first.at, first.name, first.details) == (0, 1000.0, "said", {"a": 1})
    assert (second.number, second.at, second.details["beside"]["b"]) == (1, 1005.0, 2)
    record = await store.record(name)
    assert (record.owner, is_journal(record.id), is_journal("diary")) == ("", True, False)
    stored = store._sessions[name]
    stored.events[:], whole = stored.events[:1], list(stored.events)
    with pytest.raises(TraceBroken):
        await entries(store, "diary")
    odd = Event(0, 0.0, "model", "user_said", None, "", {"text": "x"})
    stored.events[:] = seal_all([odd], genesis(name))
    stored.head = Head(name, 0, stored.events[0].hash)
    with pytest.raises(StoreCorrupt, match=r"event 0 of journal\.diary isn't a note"):
        await entries(store, "diary")
    stored.events[:], stored.head = whole, record.head
    await store.acquire(name, owner="x", now=clock.now(), lease_seconds=99)
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    monkeypatch.setattr("sopilot.records.journal.asyncio.sleep", sleep)
    with pytest.raises(RunEnded, match=r"other processes are writing to journal.diary"):
        await write(store, "diary", "said", {}, clock=clock)
    assert len(naps) > 3


# --- audits and deviations ------------------------------------------------------------


def finding(code: str, seq: int, sentence: str = "", **more: Any) -> Finding:
    return Finding(code, seq, f"{code} is so", sentence=sentence, **more)


def report(session_id: str, *findings: Finding) -> Report:
    blank = dict.fromkeys(ScoreCard.__dataclass_fields__)
    card = ScoreCard(**{**blank, "session_id": session_id, "outcome": "completed", "grades": {}})  # type: ignore[arg-type]
    return Report(findings, card)


NOTE = finding("N", 1, severity=Severity.NOTE)


async def test_an_audit_is_stored_and_its_findings_open_deviations_once(
    store: MemoryStore, clock: HandClock
) -> None:
    await renamed(store, "s")
    first = report("s", finding("A", 2, "It is so."), finding("B", 3), NOTE)
    options: dict[str, Any] = {"release": "r1", "clock": clock}
    ann, bo = Principal("ann", "token"), Principal("bo", "token")
    assert await keep_audit(store, first, key=generate_key(), who=ann, **options) == 0
    assert await keep_audit(store, report("s", NOTE), who=bo, **options) == 1
    assert await keep_audit(store, first, **options) == 2
    assert [one.code for one in (await load_deviations(store)).values()] == ["A", "B"]
    signed, clean, _ = await kept_audits(store, "s")
    head = (await store.record("s")).head
    assert (signed.release, signed.head, signed.clean) == ("r1", (head.seq, head.hash), False)
    assert (signed.by, signed.genuine) == ("ann", True)
    assert (clean.clean, clean.findings, clean.by, clean.genuine) == (True, (), "bo", None)
    key = generate_key()
    forged: dict[str, JSON] = {"session": "t", "key": key.public, "signature": key.sign(b"x")}
    await write(store, "audits.t", "audited", forged, clock=clock)
    assert [one.genuine for one in await kept_audits(store, "t")] == [False]


@pytest.mark.parametrize("private", [False, True])
async def test_where_a_report_judges_otherwise_than_the_stored_one(
    private: bool, store: MemoryStore, clock: HandClock
) -> None:
    """Of a private session only digests of the sentences are stored."""
    await renamed(store, "s", settings=Settings(private=private))
    same = (finding("A", 2, "Una is known."), finding("B", 3))
    await keep_audit(store, report("s", *same), release="r", clock=clock)
    (audit,) = await kept_audits(store, "s")
    sentence = audit.findings[0].sentence
    assert (sentence == "Una is known.") is not private
    deviation, _ = (await load_deviations(store)).values()
    assert ("is so" in deviation.explanation) is not private
    salt = str((await store.record("s")).metadata["salt"]) if private else ""
    later = finding("C", audit.head[0] + 1)
    assert differences(audit, report("s", *same, NOTE, later), salt) == []
    assert differences(audit, report("s"), salt) == [
        f"no longer found: A at #2 ({sentence})", "no longer found: B at #3",
    ]  # fmt: skip
    assert differences(audit, report("s", *same, finding("C", 5)), salt) == ["newly found: C at #5"]


# --- holds and erasures ---------------------------------------------------------------


async def set_hold(store: MemoryStore, what: str) -> None:
    details: dict[str, JSON] = {"what": what, "why": "suit"}
    await change_policy(store, "hold_set", details, who=None, clock=HandClock())


async def erase(store: MemoryStore, clock: HandClock, **wanted: Any) -> Any:
    every = {"subjects": [], "session_ids": [], "due": False, "why": "asked", **wanted}
    return await erase_wanted(store, who=None, clock=clock, **every)


async def test_sessions_that_are_not_erased_are_named_with_the_reason(
    store: MemoryStore, clock: HandClock
) -> None:
    for name, settings in (("a", PRIVATE), ("kept", PRIVATE), ("bare", Settings())):
        await renamed(store, name, settings=settings)
    await opened(store, session_id="running", settings=PRIVATE)
    await (await waiting_wire(store, session_id="waits", settings=PRIVATE)).release()
    await set_hold(store, "kept")
    with pytest.raises(UserMistake, match="name what to erase"):
        await erase(store, clock)
    names = ["a", "kept", "bare", "running", "waits", "a"]
    result = await erase(store, clock, session_ids=names)
    assert (result.erased, result.held) == (("a",), {"kept": "suit"})
    assert (result.inside_the_chain, result.running, result.unfinished) == (
        ("bare",),
        ("running",),
        ("waits",),
    )
    assert result.all_erased is False
    assert [line.partition(" ")[0] for line in result.lines()[1:]] == [
        "kept", "bare", "running", "waits",
    ]  # fmt: skip
    assert (await store.record("a")).is_erased
    records = [await store.record(name) for name in ("a", "waits")]
    again = await erase_contents(store, records, "y", unfinished=True, who=None, clock=clock)
    assert (again.erased, again.all_erased) == (("waits",), True)


# --- pruning --------------------------------------------------------------------------


@pytest.mark.parametrize(("later", "gone"), [(2 * DAY - 1, False), (2 * DAY, True)])
@pytest.mark.parametrize("dry", [True, False])
async def test_sessions_that_ended_so_many_days_ago_are_pruned(
    later: float, gone: bool, dry: bool, store: MemoryStore, clock: HandClock
) -> None:
    ended = await renamed(store, "s", "transfer", clock=clock)
    await (await waiting_wire(store, clock=clock)).release()
    clock.advance(later)
    result = await prune(store, days=2, clock=clock, dry=dry)
    assert result.pruned == (("s",) if gone else ())
    assert (await store.record("s")).is_pruned is (gone and not dry)
    assert result.events == (len(ended.events) if gone else 0)
    again = await prune(store, days=2, clock=clock)
    assert again.pruned == (("s",) if gone and dry else ())


async def test_a_session_that_somebody_runs_is_not_pruned(store: MemoryStore) -> None:
    session = await opened(store)
    await walk(session, "transfer")
    result = await prune(store, days=0, clock=session.clock)
    assert (result.pruned, result.running, result.events) == ((), (session.id,), 0)
    with pytest.raises(UserMistake, match="isn't a state of an ended session"):
        await prune(store, days=0, states=["running"], clock=session.clock)
