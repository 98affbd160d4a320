"""Pruning and erasure are recorded and carried out together, or neither is."""

from __future__ import annotations

import asyncio

import pytest
from runtime_role import runtime_dsn
from store_parts import Closing

from counter_desk import HandClock, walk
from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.messages.errors import StoreUnavailable
from sopilot.records.journal import entries
from sopilot.records.log import SealFile
from sopilot.records.privacy import erase_wanted
from sopilot.records.pruning import prune
from sopilot.records.sealing import seal_store, verify_store
from sopilot.records.store import Settings, Store
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sql import SqlStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

KEY = generate_key()


async def fill(store: Store, clock: HandClock) -> None:
    """Three private sessions that ended long ago."""
    for name in ("a", "b", "c"):
        session = await opened(store, clock=clock, session_id=name,
            settings=Settings(private=True),
        )  # fmt: skip
        await walk(session, "transfer")
        await session.release()
    clock.time += 40 * 86_400


async def try_to_delete(store: Store, clock: HandClock) -> None:
    """Prune and erase; the store refuses both. Judge the store's own rows and its seal."""
    heads, log = await store.records.heads(), await store.records.log()
    with pytest.raises(StoreUnavailable):
        await prune(store, days=30, why="a month", clock=clock)
    with pytest.raises(StoreUnavailable):
        await erase_wanted(
            store, subjects=(), session_ids=["a"], due=False, why="request 7", who=None,
            clock=clock,
        )  # fmt: skip
    kept = {one.session_id: one for one in await store.records.heads()}
    assert [kept[one.session_id] for one in heads] == heads
    assert [one.name for one in await entries(store, "privacy")] == []
    assert (await store.records.log())[: len(log)] == log
    for name in ("a", "b", "c"):
        record = await store.record(name)
        assert (record.is_pruned, record.is_erased, record.owner) == (False, False, "")
        assert len(await store.events(name)) == record.head.seq + 1
        assert await store.payloads(name)


async def check_seal(store: Store, clock: HandClock) -> None:
    sealed = await seal_store(store, KEY, at=clock.now())
    assert (sealed.pruned, sealed.erased) == ((), ())
    assert (await verify_store(store, SealFile((sealed.seal,)), [KEY.public])).gaps == []


async def test_a_role_without_delete_records_nothing(
    postgres: PostgresHere, closing: Closing
) -> None:
    clock, schema = HandClock(), "deletion_on_record"
    dsn = await asyncio.to_thread(runtime_dsn, postgres, schema)
    store = closing(PostgresStore(dsn, schema=schema))
    await fill(store, clock)
    log = await store.records.log()
    await try_to_delete(store, clock)
    assert await store.records.log() == log, "rights are checked before anything is logged"
    await check_seal(store, clock)
    owner = closing(PostgresStore(postgres.dsn, schema=schema))
    assert (await prune(owner, days=30, clock=clock)).pruned == ("c", "b", "a")


async def test_a_deletion_that_fails_is_not_recorded(durable: SqlStore) -> None:
    """The right is there and the database refuses in the middle, by a trigger."""
    clock = HandClock()
    await fill(durable, clock)
    async with durable.write() as db:
        if isinstance(durable, SQLiteStore):
            await db.execute(
                "CREATE TRIGGER kept BEFORE DELETE ON payloads"
                " BEGIN SELECT raise(ABORT, 'kept'); END"
            )
        else:
            await db.execute(
                "CREATE FUNCTION public.kept() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'kept'; END $$"
            )
            await db.execute(
                "CREATE TRIGGER kept BEFORE DELETE ON {payloads}"
                " FOR EACH ROW EXECUTE FUNCTION public.kept()"
            )
    await try_to_delete(durable, clock)
