"""One session whose row is damaged hides no other, and accuses none."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import psycopg
import pytest
from store_parts import LEASE, events, start_of

from postgres_here import PostgresHere
from sopilot.messages.errors import StoreCorrupt
from sopilot.records.store import Batch, NewSession, Store
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sqlite import SQLiteStore

DAMAGES = {
    "cut off": ("summary", '{"open":["t"'),
    "no text": ("summary", '\udcff"status":"unknown"'),
    "no object": ("summary", '["\\"status\\":\\"unknown\\"", {"status":"unknown"}]'),
    "about": ("metadata", "[]"),
}


async def three_open(store: Store) -> None:
    for name in ("a", "b", "c"):
        head = start_of(name)
        first = Batch(head, events(head, 1), {}, {"open": ["t"], "status": "running"})
        await store.create(NewSession(name, {"handbook": "h"}, {}, first), owner=name, **LEASE)
    await store.close()


async def found(store: Store) -> list[tuple[str, object]]:
    try:
        with pytest.raises(StoreCorrupt, match="the row of session b is damaged"):
            await store.record("b")
        return [(one.id, one.summary["status"]) for one in await store.unresolved(now=1000.0)]
    finally:
        await store.close()


ALL = [("c", "running"), ("b", "damaged"), ("a", "running")]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_in_a_file(tmp_path: Path, damage: tuple[str, str]) -> None:
    asyncio.run(three_open(SQLiteStore(tmp_path / "s.db")))
    column, text = damage
    table, key = ("heads", "session") if column == "summary" else ("sessions", "number")
    with sqlite3.connect(tmp_path / "s.db") as db:
        raw = text.encode("utf-8", "surrogateescape")
        own = f"{key} = (SELECT number FROM sessions WHERE id = 'b')"
        db.execute(f"UPDATE {table} SET {column} = CAST(? AS BLOB) WHERE {own}", (raw,))
    db.close()
    assert asyncio.run(found(SQLiteStore(tmp_path / "s.db"))) == ALL


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=DAMAGES.keys())
def test_in_a_server(postgres: PostgresHere, number: int) -> None:
    schema = f"damaged_{number}"
    column, text = list(DAMAGES.values())[number]
    asyncio.run(three_open(PostgresStore(postgres.dsn, schema=schema)))
    with psycopg.connect(postgres.dsn, autocommit=True) as db:
        raw = text.encode("utf-8", "surrogateescape")
        table, key = ("heads", "session") if column == "summary" else ("sessions", "number")
        own = f"{key} = (SELECT number FROM {schema}.sessions WHERE id = 'b')"
        db.execute(f"UPDATE {schema}.{table} SET {column} = %s WHERE {own}".encode(), (raw,))
    assert asyncio.run(found(PostgresStore(postgres.dsn, schema=schema))) == ALL
