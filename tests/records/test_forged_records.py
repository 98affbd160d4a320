"""Who can write to every table of a store, and has not the sealing key: found, and named."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from counter_desk import HandClock, walk
from counter_sessions import opened
from sopilot.messages.errors import RunEnded, TraceError
from sopilot.records.completeness import Verified
from sopilot.records.log import SealFile, TreeHead, prove, read_seals, seal_head
from sopilot.records.sealing import seal_store, verify_store
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sealed_heads import post_seal, read_sealed, seal_and_send
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.signing import generate_key

KEY, CLOCK = generate_key(), HandClock()
Forge = Callable[[SQLiteStore, sqlite3.Connection, str], Awaitable[None]]


async def acted(store: SQLiteStore) -> str:
    """A session with an action in the register."""
    session = await opened(store, clock=CLOCK)
    await session.user_said("I am Anna.")
    await walk(session, "rename")
    await session.release()
    return session.id


def found_after(forge: Forge, folder: Path) -> tuple[Verified, str]:
    async def case() -> tuple[Verified, str]:
        store = SQLiteStore(folder / "s.db")
        session_id = await acted(store)
        await acted(store)
        seal = (await seal_store(store, KEY, at=CLOCK.now())).seal
        with sqlite3.connect(folder / "s.db") as db:
            await forge(store, db, session_id)
        db.close()
        found = await verify_store(store, SealFile((seal,)), [KEY.public])
        await store.close()
        return found, session_id

    return asyncio.run(case())


async def rows_without_a_head(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    made = db.execute("INSERT INTO sessions (id, created_at, metadata) VALUES ('f00d', 1, '{}')")
    row = db.execute("SELECT * FROM actions LIMIT 1").fetchone()
    db.execute("INSERT INTO actions VALUES (?,?,?,?,?,?,?,?,?)", (made.lastrowid, *row[1:]))


async def rows_of_nobody(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    row = db.execute("SELECT * FROM actions LIMIT 1").fetchone()
    db.execute("INSERT INTO actions VALUES (?,?,?,?,?,?,?,?,?)", (99, *row[1:]))


async def in_it_twice(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    """Another under the same id, in a table that allows it."""
    db.execute("CREATE TABLE others AS SELECT * FROM sessions")
    db.execute("DROP TABLE sessions")
    db.execute(
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT, created_at REAL,"
        " metadata TEXT, copy INTEGER, UNIQUE (id, copy))"
    )
    db.execute("INSERT INTO sessions SELECT *, 0 FROM others")
    db.execute("INSERT INTO sessions SELECT 99, id, created_at, metadata, 1 FROM others LIMIT 1")
    db.execute(
        "INSERT INTO heads SELECT 99, 0, hash, 1, '', 1, 0, 'new', 0, '{}' FROM heads LIMIT 1"
    )


async def began_earlier(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    db.execute("UPDATE sessions SET created_at = 1 WHERE id = ?", (session_id,))


async def ended_earlier(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    db.execute("UPDATE heads SET updated_at = 1 WHERE session = 1")


async def ended_otherwise(store: SQLiteStore, db: sqlite3.Connection, session_id: str) -> None:
    changed = "summary = '{\"status\":\"refused\"}', status = 'refused', unresolved = 0"
    db.execute(f"UPDATE heads SET {changed} WHERE session = 1")


@pytest.mark.parametrize(
    ("forge", "code", "named"),
    [
        (rows_without_a_head, "inserted-session", False),
        (rows_of_nobody, "inserted-session", False),
        (in_it_twice, "inserted-session", True),
        (began_earlier, "unreadable-session", True),
        (ended_earlier, "unreadable-session", True),
        (ended_otherwise, "unreadable-session", True),
    ],
)
def test_what_the_key_did_not_seal_is_named(
    forge: Forge, code: str, named: bool, tmp_path: Path
) -> None:
    found, session_id = found_after(forge, tmp_path)
    assert code in {gap.code for gap in found.gaps}
    assert len(found.gaps) == 1 or forge is in_it_twice
    assert not named or session_id in {gap.session_id for gap in found.gaps}
    if forge is rows_without_a_head:
        assert found.gaps[0].session_id == "f00d"


def cut(path: Path) -> None:
    """The last event of the first session is gone, the register's rows and the seals with it."""
    with sqlite3.connect(path) as db:
        seq = db.execute("SELECT seq FROM heads WHERE session = 1").fetchone()[0]
        line = db.execute(
            "SELECT line FROM events WHERE place = ?", ((1 << 32) + seq - 1,)
        ).fetchone()[0]
        db.execute("DELETE FROM events WHERE place = ?", ((1 << 32) + seq,))
        digest = json.loads(line)["hash"]
        db.execute("UPDATE heads SET seq = ?, hash = ? WHERE session = 1", (seq - 1, digest))
        db.execute("DELETE FROM seals")
    db.close()


async def test_nothing_is_sealed_over_a_gap_where_the_stores_own_seals_are_gone(
    tmp_path: Path,
) -> None:
    store, heads = SQLiteStore(tmp_path / "s.db"), str(tmp_path / "heads.jsonl")
    session_id = await acted(store)
    await seal_and_send(store, KEY, [heads])
    cut(tmp_path / "s.db")
    with pytest.raises(RunEnded, match=f"session {session_id} has"):
        await seal_and_send(store, KEY, [heads])
    # Sealed by who does not look there, it is found still.
    await seal_store(store, KEY, at=CLOCK.now())
    last = (await store.records.seals())[-1]
    found = await verify_store(store, SealFile((last,)), [KEY.public])
    assert [(gap.code, gap.session_id) for gap in found.gaps] == [("rewritten-session", session_id)]
    assert len((await read_sealed(heads)).heads) == 1
    await store.close()


@pytest.mark.parametrize(
    "change",
    [
        {"size": -5},
        {"size": 10**20},
        {"at": 1e300},
        {"at": -1e18},
        {"root": "x"},
        {"root": "\ud800"},
    ],
)
def test_a_head_that_is_none_is_told(change: dict[str, object]) -> None:
    head = {"sopilot_log": 1, "size": 1, "root": "ab" * 32, "at": 1.0, "key": "k", "signature": "s"}
    assert read_seals(json.dumps(head)).heads
    with pytest.raises(TraceError, match="line 1"):
        read_seals(json.dumps({**head, **change}))


async def test_a_log_did_not_grow_from_a_longer_one() -> None:
    store = MemoryStore()
    await (await open_session(store, {}, clock=CLOCK)).release()
    seal = (await seal_store(store, KEY, at=1.0)).seal
    longer = seal_head(KEY, seal.head._replace(size=seal.head.size + 9))
    with pytest.raises(RunEnded, match="more entries"):
        prove(await store.records.log(), seal, since=longer)


def test_an_address_that_is_none_is_told() -> None:
    seal = seal_head(KEY, TreeHead(0, "ab" * 32, 1.0))
    with pytest.raises(RunEnded, match="sealed, but"):
        post_seal("http://[::1", (), seal)
