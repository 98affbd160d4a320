"""Looking for calls that were left open touches the sessions that may have one, and no others."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import psycopg

from postgres_here import PostgresHere
from sopilot.records.store import NewSession, Store
from sopilot.stores import postgres as postgres_connection
from sopilot.stores import schema as sqlite_schema
from sopilot.stores.postgres import _UNSETTLED as IN_POSTGRES
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import _UNSETTLED as IN_SQLITE
from sopilot.stores.sqlite import SQLiteStore

MANY = 3_000
ENDED = '{"frame":"","goal":"pay","open":[],"status":"completed","waiting":[]}'
LEFT = '{"frame":"","goal":"pay","open":["c1"],"status":"running","waiting":[]}'
EARLIER = '{"frame":"","goal":"pay","status":"running","waiting":[]}'


async def found_in(store: Store) -> list[str]:
    await store.migrate()
    found = [one.id for one in await store.unresolved(now=100.0)]
    await store.close()
    return found


def test_a_file_is_looked_through_by_its_index(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as db:
        for statements in sqlite_schema.MIGRATIONS[:4]:
            for statement in statements:
                db.execute(statement)
        db.execute("PRAGMA user_version = 4")
        for number in range(1, MANY + 1):
            summary = {7: LEFT, 9: EARLIER}.get(number, ENDED)
            db.execute("INSERT INTO sessions VALUES (?, ?, 1, '{}')", (number, f"s{number}"))
            db.execute(
                "INSERT INTO heads VALUES (?, 0, ?, 1, '', 1, 0, ?)", (number, "0" * 64, summary)
            )
    db.close()
    assert asyncio.run(found_in(SQLiteStore(path))) == ["s9", "s7"]
    with sqlite3.connect(path) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {IN_SQLITE}", (100.0,))]
    db.close()
    assert "heads_unsettled" in plan[0]
    assert not any(step.startswith("SCAN sessions") for step in plan)


def test_a_server_looks_through_its_index(postgres: PostgresHere) -> None:
    """Also in a store of an earlier release: the column is made for what is there."""
    tables = {name: f"swept.{name}" for name in postgres_connection.TABLES}
    with psycopg.connect(postgres.dsn, autocommit=True) as db:
        db.execute("CREATE SCHEMA swept")
        db.execute("CREATE TABLE swept.meta (name text PRIMARY KEY, value bigint)")
        for statements in postgres_connection.MIGRATIONS[:3]:
            for statement in statements:
                db.execute(statement.format_map(tables).encode())
        db.execute("INSERT INTO swept.meta VALUES ('schema', 3), ('readable_from', 2)")
        db.execute(
            "INSERT INTO swept.sessions (id, created_at, updated_at, metadata, summary, head_seq,"
            " head_hash, owner, token, lease_expires_at) SELECT 's' || i, 1, 1, '{}',"
            " CASE i WHEN 7 THEN %s WHEN 9 THEN %s ELSE %s END, 0, repeat('0', 64), '', 1, 0"
            " FROM generate_series(1, %s) AS i",
            (LEFT.encode(), EARLIER.encode(), ENDED.encode(), MANY),
        )
    assert asyncio.run(found_in(PostgresStore(postgres.dsn, schema="swept"))) == ["s9", "s7"]
    with psycopg.connect(postgres.dsn, autocommit=True) as db:
        db.execute("ANALYZE swept.sessions")
        asked = f"EXPLAIN {IN_POSTGRES.format_map(tables)}".encode()
        plan = db.execute(asked, (b'"status":"unknown"', 100.0)).fetchall()
    assert "sessions_unsettled" in plan[0][0]


def test_a_role_that_runs_sessions_writes_them_beside_the_column(postgres: PostgresHere) -> None:
    async def case() -> bool:
        store = PostgresStore(postgres.dsn, schema="beside")
        await store.create(NewSession("s", {}, {}), owner="o", now=1.0, lease_seconds=1.0)
        await store.close()
        with psycopg.connect(postgres.dsn) as db:
            row = db.execute("SELECT unsettled FROM beside.sessions").fetchone()
        assert row is not None
        return bool(row[0])

    assert asyncio.run(case()) is False
