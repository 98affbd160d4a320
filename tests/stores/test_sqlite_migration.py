"""A file of an earlier schema becomes one of this release, whole or not at all."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from counter_desk import CountingTools, HandClock, go_on
from sopilot.messages.errors import LeaseHeld, StoreUnavailable
from sopilot.session.opening import resume_session
from sopilot.stores import schema as sqlite_schema
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import encode_line, verify_chain
from sopilot.trace.signing import verify_head

DUMP = Path(__file__).parent / "schema_1.sql"
"""Two sessions as a release with schema 1 left them: one released, one at work, with values
by reference and a signed head."""
ENDED, AT_WORK = "df08acdff2c1ca3154a88596f7fbd0dc", "4a94ccd16ada365ee60f0882f473c01d"


def old_file(path: Path) -> dict[str, list[str]]:
    """Session id → its lines, in a file of schema 1."""
    db = sqlite3.connect(path)
    db.executescript(DUMP.read_text("utf-8"))
    db.execute("PRAGMA user_version = 1")
    lines: dict[str, list[str]] = {}
    for session_id, line in db.execute(
        "SELECT id, line FROM events JOIN sessions ON number = session ORDER BY session, seq"
    ):
        lines.setdefault(session_id, []).append(line)
    db.close()
    return lines


def test_a_file_of_schema_1_is_taken_over_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    lines = old_file(path)
    assert {name: len(kept) for name, kept in lines.items()} == {ENDED: 10, AT_WORK: 8}

    async def case() -> None:
        store = SQLiteStore(path)
        for session_id, kept in lines.items():
            events = await store.events(session_id)
            assert [encode_line(one) for one in events] == kept
            head = (await store.record(session_id)).head
            assert verify_chain(events, head=head) is None
            assert await store.events(session_id, after=4) == events[5:]
        [signed] = await store.signatures(AT_WORK)
        assert verify_head(signed)
        listed = {one.id: one for one in await store.sessions()}
        assert (listed[ENDED].owner, listed[ENDED].summary["status"]) == ("", "completed")
        assert listed[AT_WORK].summary["frame"] == "transfer/funds_cover@verify"
        clock = HandClock(listed[AT_WORK].updated_at)
        with pytest.raises(LeaseHeld):
            await resume_session(store, AT_WORK, tools=CountingTools(), clock=clock)
        session = await resume_session(
            store, AT_WORK, tools=CountingTools(), clock=clock, take_over=True
        )
        await go_on(session)
        assert session.configuration.process is None
        await session.release()
        again = await resume_session(store, AT_WORK, clock=clock)
        assert again.configuration == session.configuration
        assert len(await store.events(ENDED)) == 10
        await store.close()

    asyncio.run(case())


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    old_file(path)
    first, second, *_ = sqlite_schema.MIGRATIONS
    broken = (first, (*second[:-1], "DROP TABLE no_such_table"))
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_schema, "MIGRATIONS", broken)
        with pytest.raises(StoreUnavailable, match="no_such_table"):
            asyncio.run(SQLiteStore(path).sessions())
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM events WHERE session = 1").fetchone() == (10,)
    db.close()
    assert len(asyncio.run(SQLiteStore(path).events(ENDED))) == 10
