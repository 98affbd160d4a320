"""Journals beside the sessions: audits, versions, people, retention and erasures are on record."""

from __future__ import annotations

from typing import Any

import pytest
from counter_sessions import code_of, opened, waiting_wire

from counter_desk import HandClock, walk
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, ScoreCard
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import RunEnded, StoreCorrupt, TraceBroken, UserMistake
from sopilot.records.audits import (
    deviation_step,
    differences,
    keep_audit,
    kept_audits,
    load_deviations,
)
from sopilot.records.journal import entries, write
from sopilot.records.log import PREFIX, is_journal
from sopilot.records.people import Principal, change_people, issue_token, load_people
from sopilot.records.privacy import (
    change_policy,
    due_sessions,
    erase_contents,
    erase_wanted,
    load_policy,
    may_read,
    sessions_with,
)
from sopilot.records.pruning import prune
from sopilot.records.store import Settings
from sopilot.records.versions import (
    SIGNED_OFF,
    WITHDRAWN,
    authors_of,
    continue_version,
    release,
    require_released,
)
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, genesis, seal_all
from sopilot.trace.events import Event
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON

PRIVATE = Settings(private=True)
DAY = 86_400.0


def who(name: str) -> Principal:
    return Principal(name, "token", f"of {name}")


async def add_person(store: MemoryStore, name: str, *roles: str) -> None:
    """Add a person with a token. Before there is an administrator, anybody may."""
    details: dict[str, JSON] = {"person": name, "roles": list(roles), "aliases": [], "subjects": []}
    await write(store, "people", "person_added", details, clock=HandClock())
    token: dict[str, JSON] = {"person": name, "token": f"of {name}", "sha256": name}
    await write(store, "people", "token_issued", token, clock=HandClock())


async def require(store: MemoryStore, what: str) -> None:
    await write(store, "people", "demanded", {"what": what, "on": True}, clock=HandClock())


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
    with pytest.raises(StoreCorrupt, match=r"event 0 of journal\.diary is no note"):
        await entries(store, "diary")
    stored.events[:], stored.head = whole, record.head
    await store.acquire(name, owner="x", now=clock.now(), lease_seconds=99)
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    monkeypatch.setattr("sopilot.records.journal.asyncio.sleep", sleep)
    with pytest.raises(RunEnded, match=r"journal.diary is being written by others"):
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
    assert await keep_audit(store, first, key=generate_key(), who=who("ann"), **options) == 0
    assert await keep_audit(store, report("s", NOTE), who=who("bo"), **options) == 1
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


# --- versions and people --------------------------------------------------------------


async def test_a_version_ends_with_its_period_or_its_withdrawal(
    store: MemoryStore, clock: HandClock
) -> None:
    options: dict[str, Any] = {"clock": clock, "who": None}
    programs, first = {"goal": "hash"}, {"handbook": "bank", "number": 1, "by": "Bo"}
    version: dict[str, Any] = {"text": "t", "coverage": None, "by": "Ann", **options}
    with pytest.raises(UserMistake, match="end before it begins"):
        await release(store, "bank", programs={}, begin=5.0, end=5.0, **version)
    await release(store, "bank", programs=programs, begin=0.0, end=None, **version)
    await require(store, "sign-off")
    people = await load_people(store)
    await continue_version(store, SIGNED_OFF, first, **options)
    await require_released(store, people, "bank", programs, 1.0)
    assert await authors_of(store, {"handbook": "bank", "programs": programs}) == {"ann"}
    assert await authors_of(store, {}) == frozenset()
    await continue_version(store, WITHDRAWN, first, **options)
    with pytest.raises(UserMistake):
        await require_released(store, people, "bank", programs, 2000.0)


async def test_where_identity_is_required_nobody_writes_without_a_token(
    store: MemoryStore, clock: HandClock
) -> None:
    await renamed(store, "s")
    await keep_audit(store, report("s", finding("A", 2)), release="r", clock=clock)
    version: dict[str, Any] = {"text": "t", "coverage": None, "by": "Ann", "who": None}
    await release(store, "bank", programs={}, begin=0.0, end=None, clock=clock, **version)
    await require(store, "identity")
    (number,) = await load_deviations(store)
    first = {"handbook": "bank", "number": 1, "by": "Cy"}
    for attempt in (
        deviation_step(store, "judged", {"number": number, "by": "Cy"}, who=None, clock=clock),
        continue_version(store, WITHDRAWN, first, who=None, clock=clock),
    ):
        with pytest.raises(UserMistake) as refused:
            await attempt
        assert code_of(refused) == "unauthenticated"
    judged = {"number": number, "by": "x", "disposition": "true", "cause": "c", "remedy": "r"}
    await deviation_step(store, "judged", judged, who=who("bo"), clock=clock)
    assert (await load_deviations(store))[number].judged_by == "bo"


async def test_a_token_is_issued_once_per_name_to_a_person_who_is_there(
    store: MemoryStore, clock: HandClock
) -> None:
    async def issue(person: str, token: str, by: Principal | None) -> str:
        details = {"person": person, "token": token, "expires_at": None}
        return await issue_token(store, "token_issued", details, who=by, clock=clock)

    added: dict[str, JSON] = {"person": "ann", "roles": ["administrator"]}
    await change_people(store, "person_added", added, who=None, clock=clock)
    token = await issue("ANN", "T", None)
    for person, name, by, code in (
        ("x", "t", who("ann"), "unknown-person"),
        ("ann", " t", who("ann"), "token-exists"),
        ("ann", "new", who("bo"), "not-administrator"),
    ):
        with pytest.raises(UserMistake) as refused:
            await issue(person, name, by)
        assert code_of(refused) == code
    assert (await load_people(store)).of_token(token, 0.0) == Principal("ann", "token", "T")


async def test_only_privacy_officers_change_who_reads_contents(
    store: MemoryStore, clock: HandClock
) -> None:
    async def name_readers(by: Principal | None, *roles: str) -> None:
        await change_policy(store, "readers_named", {"roles": [*roles]}, who=by, clock=clock)

    await name_readers(None, "judge")
    for name, role in (("ann", "administrator"), ("bo", "privacy"), ("cy", "judge")):
        await add_person(store, name, role)
    for by in (None, who("cy"), who("nobody")):
        with pytest.raises(UserMistake) as refused:
            await name_readers(by, "judge")
        assert code_of(refused) == "not-entitled"
    for by in (who("ann"), who("bo")):
        await name_readers(by, "judge")
    readers = [await may_read(store, by) for by in (None, who("ann"), who("cy"), who("x"))]
    assert readers == [False, False, True, False]
    await name_readers(who("ann"))
    assert await may_read(store, None) is True


# --- holds and erasures ---------------------------------------------------------------


async def set_hold(store: MemoryStore, what: str, name: str = "hold_set") -> None:
    details: dict[str, JSON] = {"what": what, **({"why": "suit"} if name == "hold_set" else {})}
    await change_policy(store, name, details, who=None, clock=HandClock())


async def erase(store: MemoryStore, clock: HandClock, **wanted: Any) -> Any:
    every = {"subjects": [], "session_ids": [], "due": False, "why": "asked", **wanted}
    return await erase_wanted(store, who=None, clock=clock, **every)


async def test_holds_are_set_and_lifted_and_lose_the_words_of_who_is_erased(
    store: MemoryStore, clock: HandClock
) -> None:
    for what in ("una", "una", "bob"):
        await set_hold(store, what)
    assert dict((await load_policy(store)).holds) == {"una": "suit", "bob": "suit"}
    with pytest.raises(UserMistake, match="there is no hold on `eve`"):
        await set_hold(store, "eve", "hold_lifted")
    await set_hold(store, "una", "hold_lifted")
    assert dict((await load_policy(store)).holds) == {"bob": "suit"}
    await renamed(store, "s", settings=PRIVATE)
    with pytest.raises(UserMistake, match="names the person to erase"):
        await erase(store, clock, subjects=["una"], why="UNA asked")
    assert (await erase(store, clock, subjects=["una"])).erased == ("s",)
    words = [one.details["beside"] for one in (await entries(store, "privacy"))[:3]]
    assert [one.get("what") for one in words] == [None, None, "bob"]
    assert dict((await load_policy(store)).holds) == {"bob": "suit"}
    await set_hold(store, "bob", "hold_lifted")
    # Neither a digest that has the text in it nor an erased session names anybody.
    assert (await erase(store, clock, subjects=["7"])).erased == ()
    await set_hold(store, "cy")
    store._sessions[PREFIX + "privacy"].payloads.clear()
    with pytest.raises(StoreCorrupt, match="a legal hold has lost its words"):
        await load_policy(store)


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


async def test_sessions_are_erased_by_person_and_by_retention_period(
    store: MemoryStore, clock: HandClock
) -> None:
    for name, goal in (("a", "rename"), ("b", "transfer")):
        await renamed(store, name, goal, settings=PRIVATE, handbook="counter", clock=clock)
    assert [one.id for one in await sessions_with(store, ["ＢＯＢ"])] == ["b"]
    assert {one.id for one in await sessions_with(store, ["UNA", "x"])} == {"a", "b"}
    assert await sessions_with(store, ["", "nobody at all"]) == []
    assert await due_sessions(store, clock.now()) == []
    period: dict[str, JSON] = {"handbook": "counter/rename", "seconds": 50}
    await write(store, "privacy", "period_set", period, clock=clock)
    clock.advance(49)
    assert await due_sessions(store, clock.now()) == []
    clock.advance(1)
    assert [one.id for one in await due_sessions(store, clock.now())] == ["a"]
    await set_hold(store, "una")
    result = await erase(store, clock, subjects=["una"], due=True)
    assert (result.erased, set(result.held)) == ((), {"a", "b"})
    await set_hold(store, "una", "hold_lifted")
    assert (await erase(store, clock, due=True)).erased == ("a",)
    assert await due_sessions(store, clock.now()) == []
    assert (await erase(store, clock, subjects=["bob"])).erased == ("b",)


@pytest.mark.parametrize(
    "text", ["it is Zoë", '{"name": ["zoë", 1]}', '{"zoë": 1}', '"zo\\u00eb"', '["{no", "ZOË"]']
)
async def test_a_person_is_found_wherever_the_name_stands(text: str, store: MemoryStore) -> None:
    session = await opened(store, settings=PRIVATE)
    await session.user_said(text)
    assert [one.id for one in await sessions_with(store, ["zoë"])] == [session.id]
    assert await sessions_with(store, ["zoe1"]) == []


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


async def test_sessions_are_archived_before_they_are_pruned_on_record(
    store: MemoryStore, clock: HandClock
) -> None:
    for name in ("a", "kept"):
        await renamed(store, name)
    await set_hold(store, "kept")
    archived: list[tuple[str, ...]] = []

    async def archive(ids: Any) -> None:
        assert not (await store.record("a")).is_pruned
        archived.append(tuple(ids))

    dry = await prune(store, days=0, clock=clock, archive=archive, dry=True)
    assert (archived, dry.pruned, dry.held, dry.dry_run) == ([], ("a",), {"kept": "suit"}, True)
    head = (await store.record("a")).head
    result = await prune(store, days=0, why="old", clock=clock, archive=archive)
    assert (archived, result.pruned, result.events) == ([("a",)], ("a",), head.seq + 1)
    assert result.lines() == [
        f"{head.seq + 1} events of 1 session were deleted", "kept is on hold: suit",
    ]  # fmt: skip
    (entry,) = [one for one in await entries(store, "privacy") if one.name == "pruned"]
    assert entry.details["why"] == "old"
    assert entry.details["sessions"] == {"a": [head.seq, head.hash]}
    assert (await prune(store, days=0, states=["refused"], clock=clock)).pruned == ()
    await add_person(store, "ann", "administrator")
    with pytest.raises(UserMistake) as refused:
        await prune(store, days=0, clock=clock)
    assert code_of(refused) == "not-entitled"
    await prune(store, days=0, clock=clock, dry=True)
