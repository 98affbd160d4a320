"""Contents are erased in every store, and what was sealed still verifies."""

from __future__ import annotations

import asyncio
import random

import pytest

from counter_desk import CountingTools, HandClock, wander
from counter_sessions import opened
from sopilot.messages.errors import RunEnded
from sopilot.records.journal import entries, write
from sopilot.records.loading import rebuild_register, register
from sopilot.records.log import SealFile
from sopilot.records.privacy import erase_contents, sessions_with
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.selection import Wanted
from sopilot.records.store import Settings, Store
from sopilot.session.opening import resume_session
from sopilot.trace.signing import generate_key


async def test_what_is_left_verifies_and_names_nobody(store: Store) -> None:
    clock, key = HandClock(), generate_key()
    settings = Settings(private=True, columns=frozenset({"amount"}))
    ids = []
    for seed in range(4):
        session = await opened(store, clock=clock, settings=settings)
        await wander(session, random.Random(seed), 40)
        await session.user_said("this is una speaking")
        await session.release()
        ids.append(session.id)
    before = [one.as_json() for one in (await register(store, Wanted())).entries(None)]
    seals = SealFile(((await seal_store(store, key, at=5.0)).seal,))
    again = await resume_session(store, ids[0], tools=CountingTools(), clock=clock)
    await again.release()
    found = await sessions_with(store, ["UNA"])
    assert {one.id for one in found} == set(ids)
    seals = SealFile(((await seal_store(store, key, at=6.0)).seal,))
    first = await erase_contents(store, found[1:], "asked for", who=None, clock=clock)
    assert first.unfinished, "a call that waits is not erased without a word"
    assert not first.all_erased
    rest = [one for one in found if one.id in first.unfinished]
    done = await erase_contents(store, rest, "asked for", unfinished=True, who=None, clock=clock)
    assert {*first.erased, *done.erased} == {one.id for one in found[1:]}
    assert done.all_erased
    assert [one.id for one in await sessions_with(store, ["una"])] == [found[0].id]
    for session_id in (*first.erased, *done.erased):
        assert await store.payloads(session_id) == {}
        with pytest.raises(RunEnded, match="erased"):
            await resume_session(store, session_id, tools=CountingTools(), clock=clock)
    for events in (True, False):
        verified = await verify_store(store, seals, [key.public], events=events)
        assert verified.gaps == []
    assert (await rebuild_register(store))[1] == {}
    after = [one.as_json() for one in (await register(store, Wanted())).entries(None)]
    assert after == before
    assert (await verify_store(store, seals, [key.public])).gaps == []


async def test_writers_of_a_journal_take_turns(store: Store) -> None:
    clock = HandClock()
    await asyncio.gather(*(write(store, "diary", "said", {"n": n}, clock=clock) for n in range(8)))
    found = await entries(store, "diary")
    assert [one.number for one in found] == list(range(8))
    assert {one.details["n"] for one in found} == set(range(8))
    assert await store.sessions() == []
    assert await store.records.count_sessions() == 0
