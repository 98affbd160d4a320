"""Disk full, locked, damaged, gone: a clear error, and a session that goes on afterwards."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from store_parts import Closing

from counter_desk import COUNTER, CountingTools, HandClock, go_on, walk
from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.messages.errors import (
    SopilotError,
    StoreTooNew,
    StoreUnavailable,
    TraceError,
    UserMistake,
)
from sopilot.records.store import Store
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.schema import SCHEMA_VERSION
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import verify_chain
from sopilot.trace.events import Start


async def fill(session: Session, most: int = 2000) -> None:
    for _ in range(most):
        await session.user_said("x" * 4000)


async def check_intact(store: Store, session: Session) -> None:
    """What the store holds is what the session was told, and it goes on."""
    stored = await store.events(session.id)
    assert stored == list(session.events)
    assert verify_chain(stored, session_id=session.id, head=session.head) is None
    await walk(session, "rename")
    assert session.configuration.process is None
    await session.release()
    again = await resume_session(store, session.id, clock=session.clock, programs=COUNTER)
    assert again.configuration == session.configuration


async def test_a_full_disk(file_store: SQLiteStore) -> None:
    session = await opened(file_store)
    connection = (await file_store.open()).connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(StoreUnavailable, match="no space is left"):
        await fill(session)
    connection.execute("PRAGMA max_page_count = 1000000")
    await check_intact(file_store, session)


async def test_a_file_that_may_not_grow(file_store: SQLiteStore) -> None:
    """The kernel refuses the write itself, as it does on a full file system."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    session = await opened(file_store)
    await session.user_said("hello")
    wal = Path(f"{file_store.path}-wal").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 60_000, before[1]))
    try:
        with pytest.raises(StoreUnavailable):
            await fill(session)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    await check_intact(file_store, session)


async def test_a_locked_database(tmp_path: Path, closing: Closing) -> None:
    store = closing(SQLiteStore(tmp_path / "s.db", busy_seconds=0.3))
    session = await opened(store)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ticks = 0

    async def others_go_on() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    beside = asyncio.create_task(others_go_on())
    with pytest.raises(StoreUnavailable, match="locked by another program"):
        await session.user_said("hello")
    beside.cancel()
    assert ticks >= 2, "waiting for a lock must not stop the event loop"
    other.execute("ROLLBACK")
    other.close()
    await check_intact(store, session)


async def test_another_writer_of_ours_takes_its_turn(
    file_store: SQLiteStore, closing: Closing
) -> None:
    second = closing(SQLiteStore(file_store.path, busy_seconds=0.2))
    session = await opened(second)
    async with file_store.write():
        with pytest.raises(StoreUnavailable, match="another writer kept it"):
            await session.user_said("hello")
    await check_intact(second, session)


async def test_files_are_their_owners_alone(file_store: SQLiteStore) -> None:
    await opened(file_store)
    for path in file_store.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_promised_sync_modes(tmp_path: Path, closing: Closing) -> None:
    for mode, number in (("FULL", 2), ("NORMAL", 1)):
        store = closing(SQLiteStore(tmp_path / f"{mode}.db", synchronous=mode))  # type: ignore[arg-type]
        connection = (await store.open()).connection
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == number
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA mmap_size").fetchone()[0] == 0


async def test_a_file_of_a_later_release(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SQLiteStore(path)
    session = await opened(store)
    await store.close()
    later = sqlite3.connect(path)
    later.execute("ALTER TABLE sessions ADD COLUMN colour TEXT")
    later.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    later.commit()
    store = SQLiteStore(path)
    again = await resume_session(store, session.id, tools=CountingTools(), take_over=True)
    await walk(again, "rename")
    await store.close()
    needs = (SCHEMA_VERSION + 1,)
    later.execute("UPDATE meta SET value = ? WHERE name = 'readable_from'", needs)
    later.commit()
    later.close()
    with pytest.raises(StoreTooNew, match=f"this store has schema {SCHEMA_VERSION + 1}"):
        await SQLiteStore(path).sessions()


class Damaged:
    """A store with one session, read again from damaged copies of its file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._origin = folder / "s.db"
        asyncio.run(self._write())
        self.raw = self._origin.read_bytes()
        self.read = 0
        self.refused = 0

    async def _write(self) -> None:
        store = SQLiteStore(self._origin)
        session = await opened(store)
        await walk(session, "transfer")
        self._id, self._whole = session.id, list(session.events)
        await store.close()

    def page(self, table: str) -> range:
        with sqlite3.connect(self._origin) as db:
            [(root,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
            [(size,)] = db.execute("PRAGMA page_size")
        db.close()
        return range((root - 1) * size, root * size)

    def flipped(self, places: Sequence[int], source: random.Random) -> bytes:
        broken = bytearray(self.raw)
        for place in places:
            broken[place] ^= 1 << source.randrange(8)
        return bytes(broken)

    def check(self, broken: bytes) -> None:
        """What was written, or a refusal of ours: nothing else comes out."""
        path = self._folder / f"broken{self.read}.db"
        path.write_bytes(broken)
        self.read += 1
        asyncio.run(self._resume(path))

    async def _resume(self, path: Path) -> None:
        store = SQLiteStore(path, synchronous="NORMAL")
        try:
            session = await resume_session(
                store, self._id, clock=HandClock(5000.0), programs=COUNTER
            )
            assert list(session.events) == self._whole
        except (SopilotError, TraceError):
            self.refused += 1
        finally:
            await store.close()


def test_damaged_files_give_what_was_written_or_a_refusal(tmp_path: Path) -> None:
    """Cut and flipped bytes, as a failing disk leaves them."""
    source = random.Random(27)
    damaged = Damaged(tmp_path)
    size = len(damaged.raw)
    for _ in range(30):
        damaged.check(damaged.raw[: source.randrange(size)])
        places = source.sample(range(size), source.choice((1, 8, 64)))
        damaged.check(damaged.flipped(places, source))
    assert damaged.refused >= 30


@pytest.mark.parametrize("table", ["heads", "sqlite_schema"])
def test_a_flipped_bit_where_it_hurts_most(table: str, tmp_path: Path) -> None:
    """The row that says who may write, and the schema, whose names SQLite quotes."""
    source = random.Random(27)
    damaged = Damaged(tmp_path)
    page = range(4096) if table == "sqlite_schema" else damaged.page(table)
    used = [place for place in page if damaged.raw[place]]
    for place in source.sample(used, min(len(used), 250)):
        damaged.check(damaged.flipped([place], source))
    assert 0 < damaged.refused < damaged.read


async def test_a_server_that_is_gone_and_comes_back(
    postgres: PostgresHere, closing: Closing
) -> None:
    store = closing(PostgresStore(postgres.dsn, schema="gone", connect_seconds=1))
    session = await opened(store)
    await session.operate(Start("transfer", {"username": "ann", "to": "bob", "amount": 5}))
    await asyncio.to_thread(postgres.stop_immediately)
    try:
        before = session.configuration
        with pytest.raises(StoreUnavailable, match="PostgreSQL is not available"):
            await session.user_said("hello")
        with pytest.raises(StoreUnavailable):
            await session.user_said("hello?")
        assert session.configuration == before
    finally:
        await asyncio.to_thread(postgres.start)
    await go_on(session)
    await check_intact(store, session)


async def test_a_server_that_never_was() -> None:
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/none", connect_seconds=1)
    with pytest.raises(StoreUnavailable, match="PostgreSQL is not available"):
        await store.sessions()
    with pytest.raises(UserMistake, match="cannot name a schema"):
        PostgresStore("", schema="x; drop table y")


async def test_commits_are_durable_whatever_the_server_says(
    postgres: PostgresHere, closing: Closing
) -> None:
    dsn = postgres.dsn + "&options=-c%20synchronous_commit%3Doff"
    async with closing(PostgresStore(dsn, schema="durable")).write() as db:
        assert await db.rows("SELECT current_setting('synchronous_commit')") == [("on",)]
