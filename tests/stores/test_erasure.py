"""Contents are erased in every store, and what was sealed still verifies."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path

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
from sopilot.stores.sqlite import SQLiteStore
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


def kept_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("reader", [True, False])
async def test_an_erasure_that_was_cut_off_is_finished_when_the_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: bool
) -> None:
    """A reader of another program keeps the log from being cut."""
    alive, killed = tmp_path / "alive", tmp_path / "killed"

    async def die(store: SQLiteStore) -> None:
        shutil.copytree(alive, killed)

    store, clock = SQLiteStore(alive / "store.db"), HandClock()
    session = await opened(store, clock=clock, settings=Settings(private=True))
    await session.user_said("this is una speaking")
    await session.release()
    with monkeypatch.context() as patched:
        patched.setattr(SQLiteStore, "compact", die)
        await erase_contents(
            store, await sessions_with(store, ["una"]), "asked for", who=None, clock=clock
        )
    await store.close()
    assert b"una speaking" in kept_bytes(killed)
    other = sqlite3.connect(killed / "store.db", isolation_level=None)
    if reader:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM sessions").fetchone()
        busy = SQLiteStore(killed / "store.db")
        await busy.migrate()
        assert b"una speaking" in kept_bytes(killed)
        await busy.close()
    other.close()
    again = SQLiteStore(killed / "store.db")
    await again.migrate()
    assert b"una speaking" not in kept_bytes(killed)
    assert (await again.record(session.id)).is_erased
    await again.close()


async def test_writers_of_a_journal_take_turns(store: Store) -> None:
    clock = HandClock()
    await asyncio.gather(*(write(store, "diary", "said", {"n": n}, clock=clock) for n in range(8)))
    found = await entries(store, "diary")
    assert [one.number for one in found] == list(range(8))
    assert {one.details["n"] for one in found} == set(range(8))
    assert await store.sessions() == []
    assert await store.records.count_sessions() == 0
