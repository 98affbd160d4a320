"""All rows of a PostgreSQL store, for copies of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sopilot.adapters.postgres_connection import PostgresServer
from sopilot.adapters.postgres_rows import text_of
from sopilot.runtime.vm.values import Fields

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_BATCH = 1000
_OF = "session IN (SELECT number FROM {sessions} WHERE id = ANY(%s))"
_ACTIONS = "session, call, at, action, outcome, grade, expires_at, arguments, rest"
_READ: Mapping[str, tuple[str, str]] = {
    "meta": ("SELECT name, value FROM {meta} WHERE name = 'register_due'", ""),
    "programs": ("SELECT sha256, artifact FROM {programs}", ""),
    "sessions": (
        "SELECT number, id, created_at, updated_at, metadata, summary, head_seq, head_hash, token"
        " FROM {sessions}",
        "id = ANY(%s)",
    ),
    "events": ("SELECT session, seq, line FROM {events}", _OF),
    "payloads": ("SELECT session, ref, value FROM {payloads}", _OF),
    "signatures": ("SELECT session, seq, key, line FROM {signatures}", _OF),
    "actions": (f"SELECT {_ACTIONS} FROM {{actions}}", _OF),
    "decisions": ("SELECT number, session, at, line, taken::int FROM {decisions}", _OF),
    "log": ("SELECT number, at, session, seq, hash, actions FROM {log} ORDER BY number", ""),
    "seals": ("SELECT number, line FROM {seals} ORDER BY number", ""),
}
_OWN = "OVERRIDING SYSTEM VALUE"
_FILL: Mapping[str, str] = {
    "meta": "INSERT INTO {meta} VALUES (%s,%s) ON CONFLICT (name) DO UPDATE"
    " SET value = EXCLUDED.value",
    "programs": "INSERT INTO {programs} VALUES (%s,%s) ON CONFLICT DO NOTHING",
    "sessions": "INSERT INTO {sessions} (number, id, created_at, updated_at, metadata, summary,"
    " head_seq, head_hash, token, owner, lease_expires_at)"
    f" {_OWN} VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s + 1,'',0)",
    "events": "INSERT INTO {events} VALUES (%s,%s,%s)",
    "payloads": "INSERT INTO {payloads} VALUES (%s,%s,%s)",
    "signatures": "INSERT INTO {signatures} VALUES (%s,%s,%s,%s)",
    "actions": f"INSERT INTO {{actions}} ({_ACTIONS}) VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s)",
    "decisions": "INSERT INTO {decisions} (number, session, at, line, taken)"
    f" {_OWN} VALUES (%s,%s,%s,%s,%s::int::boolean)",
    "log": "INSERT INTO {log} VALUES (%s,%s,%s,%s,%s,%s)",
    "seals": f"INSERT INTO {{seals}} (number, line) {_OWN} VALUES (%s,%s)",
}
_BYTES: Mapping[str, frozenset[int]] = {
    "programs": frozenset({1}), "sessions": frozenset({4, 5}), "events": frozenset({2}),
    "payloads": frozenset({2}), "signatures": frozenset({3}), "decisions": frozenset({3}),
}  # fmt: skip
"""Columns that are text elsewhere."""
_NUMBERED = ("sessions", "seals", "decisions")


class PostgresCopies:
    _server: PostgresServer

    @asynccontextmanager
    async def read_rows(self) -> AsyncIterator[Any]:
        async with self._server.transaction() as db:
            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield lambda table, only: self._read(db, table, only)

    async def _read(
        self, db: AsyncConnection, table: str, only: Collection[str] | None
    ) -> AsyncIterator[list[Sequence[Any]]]:
        query, own = _READ[table]
        some = only is not None and bool(own)
        spelled = _BYTES.get(table, frozenset())
        async with db.cursor(name=f"copy_{table}") as cursor:
            await cursor.execute(
                self._server.sql(f"{query} WHERE {own}" if some else query),
                (list(only or ()),) if some else (),
            )
            while rows := await cursor.fetchmany(_BATCH):
                yield [
                    [bytes(one).decode() if at in spelled else one for at, one in enumerate(row)]
                    for row in rows
                ]

    @asynccontextmanager
    async def fill_rows(self) -> AsyncIterator[Any]:
        async with self._server.transaction() as db, db.cursor() as cursor:

            async def fill(table: str, rows: list[Sequence[Any]]) -> None:
                spelled = _BYTES.get(table, frozenset())
                await cursor.executemany(
                    self._server.sql(_FILL[table]),
                    [
                        [one.encode() if at in spelled else one for at, one in enumerate(row)]
                        for row in rows
                    ],
                )

            yield fill
            for table in _NUMBERED:
                name = self._server.sql(f"{{{table}}}").decode()
                await db.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'number'),"
                    f" coalesce(max(number), 0) + 1, false) FROM {name}".encode()
                )

    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        found: dict[str, tuple[int, int | None]] = {}
        async with self._server.transaction() as db:
            for table in _READ:
                name = self._server.sql(f"{{{table}}}").decode()
                query = f"SELECT count(*), pg_total_relation_size('{name}') FROM {name}"
                row = await (await db.execute(query.encode())).fetchone()
                found[table] = (int(row[0]), int(row[1])) if row else (0, 0)
        total = sum(size or 0 for _, size in found.values())
        return {**found, "total": (found["sessions"][0], total)}

    async def prune(self, metadata: Mapping[str, Fields]) -> None:
        sql = self._server.sql
        async with self._server.transaction() as db:
            for session_id, kept in metadata.items():
                cursor = await db.execute(
                    sql("UPDATE {sessions} SET metadata = %s WHERE id = %s RETURNING number"),
                    (text_of(dict(kept)), session_id),
                )
                number = await cursor.fetchone()
                for table in ("events", "payloads", "decisions", "signatures"):
                    await db.execute(sql(f"DELETE FROM {{{table}}} WHERE session = %s"), number)
