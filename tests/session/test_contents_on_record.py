"""Readings and erasures of contents are on record, and what waits or was left is found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from journal_cases import code_of, person, session, who

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.records.journal import entries, write
from sopilot.records.log import PREFIX, is_journal
from sopilot.records.privacy import (
    change_policy,
    due_sessions,
    erase_contents,
    erase_wanted,
    note_reading,
    reading_lines,
    sessions_with,
)
from sopilot.records.pruning import prune
from sopilot.records.reminders import due_calls
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.orphans import keep_sweeping, resolve_orphan, sweep, waiting_in
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON

# --- readings and erasures ------------------------------------------------------------


async def test_who_read_contents_is_on_record() -> None:
    store, clock = MemoryStore(), HandClock()
    await write(store, "privacy", "readers_named", {"roles": ["judge"]}, clock=clock)
    await person(store, "cy", "judge")
    for by, how in (
        (who("cy"), {}), (None, {}), (None, {"to_all": True}), (None, {"or_nothing": True}),
        (who("cy"), {"or_nothing": True}),
    ):  # fmt: skip
        await note_reading(store, "show", ["a", "b"], who=by, clock=clock, **how)
    lines = reading_lines(await entries(store, "reading"))
    assert [line.partition("show ")[2] for line in lines[:-1]] == [
        f"a, b ({seen}) by {by}"
        for seen, by in (
            ("contents", "cy, token"), ("masked", "somebody, unauthenticated"),
            ("contents", "somebody, unauthenticated"), ("refused", "somebody, unauthenticated"),
            ("contents", "cy, token"),
        )
    ]  # fmt: skip
    assert lines[-1] == "5 on record"


async def test_what_is_erased_and_what_is_not() -> None:
    store, clock = MemoryStore(), HandClock()
    private = Settings(private=True)
    for name, settings in (("a", private), ("kept", private), ("bare", Settings())):
        await walk(one := await session(store, clock, name, settings=settings), "rename")
        await one.release()
    await session(store, clock, "running", settings=private)
    waits = await session(store, clock, "waits", settings=private)
    await walk(waits, "wire", stop_at_action="wire")
    await waits.call_tool("wire", ERRANDS["wire"], "w")
    await waits.release()
    await change_policy(store, "hold_set", {"what": "kept", "why": "suit"}, who=None, clock=clock)
    asked: dict[str, Any] = {"subjects": [], "session_ids": [], "due": False, "why": "y"}
    with pytest.raises(UserMistake, match="name what to erase"):
        await erase_wanted(store, who=None, clock=clock, **asked)
    names = ["a", "kept", "bare", "running", "waits"]
    told = await erase_wanted(
        store, who=None, clock=clock, **{**asked, "session_ids": [*names, "a"]}
    )
    assert (told.erased, told.held) == (("a",), {"kept": "suit"})
    assert (told.bare, told.running, told.unfinished) == (("bare",), ("running",), ("waits",))
    assert (await store.record("a")).is_erased
    again = await erase_contents(
        store, [await store.record(one) for one in ("a", "waits")], "y",
        unfinished=True, who=None, clock=clock,
    )  # fmt: skip
    assert again.erased == ("waits",)


async def test_sessions_in_which_somebody_stands_and_those_beyond_their_period() -> None:
    store, clock = MemoryStore(), HandClock()
    private = Settings(private=True)
    for name, goal in (("a", "rename"), ("b", "transfer")):
        one = await session(store, clock, name, settings=private, handbook="counter")
        await walk(one, goal)
        await one.release()
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
    await change_policy(store, "hold_set", {"what": "una", "why": "suit"}, who=None, clock=clock)
    asked: dict[str, Any] = {"session_ids": [], "why": "", "who": None, "clock": clock}
    told = await erase_wanted(store, subjects=["una"], due=True, **asked)
    assert (told.erased, set(told.held)) == ((), {"a", "b"})
    await change_policy(store, "hold_lifted", {"what": "una"}, who=None, clock=clock)
    assert (await erase_wanted(store, subjects=[], due=True, **asked)).erased == ("a",)
    assert await due_sessions(store, clock.now()) == []
    assert (await erase_wanted(store, subjects=["bob"], due=False, **asked)).erased == ("b",)


async def test_what_is_archived_before_it_is_pruned_and_by_whom() -> None:
    store, clock = MemoryStore(), HandClock()
    for name in ("a", "kept"):
        await walk(one := await session(store, clock, name), "rename")
        await one.release()
    await change_policy(store, "hold_set", {"what": "kept", "why": "suit"}, who=None, clock=clock)
    archived: list[Sequence[str]] = []

    async def archive(ids: Any) -> None:
        assert not (await store.record("a")).is_pruned
        archived.append(tuple(ids))

    dry = await prune(store, days=0, clock=clock, archive=archive, dry=True)
    assert (archived, dry.pruned, dry.held, dry.dry) == ([], ("a",), {"kept": "suit"}, True)
    count = (await store.record("a")).head.seq + 1
    found = await prune(store, days=0, why="old", clock=clock, archive=archive)
    assert (archived, found.pruned, found.events) == ([("a",)], ("a",), count)
    assert (await store.record("a")).owner == ""
    (entry,) = [one for one in await entries(store, "privacy") if one.name == "pruned"]
    head = (await store.record("a")).head
    assert entry.details["why"] == "old"
    assert entry.details["sessions"] == {"a": [head.seq, head.hash]}
    assert (await prune(store, days=0, states=["refused"], clock=clock)).pruned == ()
    await person(store, "ann", "administrator")
    with pytest.raises(UserMistake) as refused:
        await prune(store, days=0, clock=clock)
    assert code_of(refused) == "not-entitled"
    await prune(store, days=0, clock=clock, dry=True)


# --- what waits, and what was left -----------------------------------------------------


async def test_who_is_told_of_what_expires() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await session(store, clock, "s")
    await walk(one, "wire", stop_at_action="wire")
    await one.call_tool("wire", ERRANDS["wire"], "w")
    await one.release()
    await person(store, "ann", "supervisor")
    await person(store, "bo", "officer")
    said: dict[str, JSON] = {"role": "auditor", "to": "officer", "before_seconds": 600.0}
    await write(store, "people", "escalation_set", said, clock=clock)
    for later, escalated in (
        (2999, {}),
        (1, {"auditor": "officer"}),
        (600, {"auditor": "officer"}),
    ):
        clock.advance(later)
        (call,) = await due_calls(store, clock=clock)
        assert call.escalated == escalated
        assert call.people["supervisor"] == ["ann"]
        assert (call.approvals, call.needed, call.expires_at) == (0, 2, 4600.0)
    (told,) = await due_calls(store, once=True, clock=clock)
    assert await due_calls(store, once=True, clock=clock) == []
    assert [one.details["call"] for one in await entries(store, "reminders")] == [told.noted_as]


class Slow(CountingTools):
    """Dies in the middle of a call that cannot be undone."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> Any:
        if name == "transfer":
            raise asyncio.CancelledError
        return await super().call(name, arguments, key=key)


async def test_a_sweep_waits_until_the_owner_counts_as_gone() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await open_session(store, COUNTER, tools=Slow(), clock=clock, session_id="s")
    await walk(one, "transfer", stop_at_action="transfer")
    with pytest.raises(asyncio.CancelledError):
        await one.call_tool("transfer", ERRANDS["transfer"], "t")
    waiting = await waiting_in(store, "s", clock=clock)
    assert (waiting.unknown, waiting.running) == ((), True)
    assert await resolve_orphan(store, "s", clock=clock) == []
    clock.advance(one.settings.lease_seconds + 1.9)
    assert await sweep(store, clock=clock) == []
    waiting = await waiting_in(store, "s", clock=clock)
    assert [one.call_id for one in waiting.unknown] == ["t"]
    assert waiting.running is False
    clock.advance(0.2)
    (left,) = await sweep(store, clock=clock)
    assert left.as_json() == {"session": "s", "call_id": "t", "action": "transfer"}
    assert await sweep(store, clock=clock) == []
    assert [one.call_id for one in (await waiting_in(store, "s", clock=clock)).unknown] == ["t"]


async def test_sweeping_goes_on_where_a_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    answers: list[Any] = [RunEnded("gone"), [], ["left"], []]

    async def swept(store: Any, **given: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, RunEnded):
            raise answer
        return answer

    monkeypatch.setattr("sopilot.session.orphans.sweep", swept)
    told: list[Any] = []
    warned: list[str] = []
    with pytest.raises(IndexError):
        await keep_sweeping(store, 0.0, told.append, warned.append)
    assert (told, warned) == ([[], ["left"], []], ["sopilot: gone"])
    answers[:] = [["left"]]
    assert await keep_sweeping(store, None, told.append, warned.append) is True
    answers[:] = [[]]
    assert await keep_sweeping(store, None, told.append, warned.append) is False
    answers[:] = [RunEnded("gone")]
    with pytest.raises(RunEnded):
        await keep_sweeping(store, None, told.append, warned.append)
    assert len(warned) == 1


async def test_journals_are_no_sessions() -> None:
    store, clock = MemoryStore(), HandClock()
    assert await entries(store, "diary") == []
    assert [await write(store, "diary", "said", {"n": n}, clock=clock) for n in range(3)] == [
        0, 1, 2,
    ]  # fmt: skip
    clock.advance(5)
    await write(store, "diary", "heard", {}, clock=clock)
    found = await entries(store, "diary")
    assert [(one.number, one.at, one.name) for one in found] == [
        (0, 1000.0, "said"), (1, 1000.0, "said"), (2, 1000.0, "said"), (3, 1005.0, "heard"),
    ]  # fmt: skip
    record = await store.record(PREFIX + "diary")
    assert (record.metadata["format"], record.owner) == (1, "")
    assert is_journal(record.id)
    assert not is_journal("diary")
