"""The register of actions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sopilot.adapters.postgres_connection import PostgresServer
from sopilot.adapters.record_filters import filters
from sopilot.runtime.records import ActionRow, Wanted
from sopilot.runtime.trace import Head

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_UPSERT = (
    "INSERT INTO {actions} VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s) ON CONFLICT (session, call)"
    " DO UPDATE SET at = EXCLUDED.at, action = EXCLUDED.action, outcome = EXCLUDED.outcome,"
    " grade = EXCLUDED.grade, expires_at = EXCLUDED.expires_at,"
    " arguments = EXCLUDED.arguments, rest = EXCLUDED.rest"
)


async def add_actions(
    server: PostgresServer, db: AsyncConnection, number: int, rows: Sequence[ActionRow]
) -> None:
    """In the transaction of the events they were made from."""
    for row in rows:
        await db.execute(server.sql(_UPSERT), (number, *row))


class PostgresRecords:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        where, values = filters(wanted, "%s")
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT {sessions}.id, call, at, action, outcome, grade, expires_at,"
                    " arguments, rest FROM {actions} JOIN {sessions} ON session = number"
                    f"{where} ORDER BY at DESC, session DESC, call"
                ),
                values,
            )
            rows = await cursor.fetchall()
        return [(row[0], ActionRow(*row[1:])) for row in rows]

    async def count_actions(self) -> int:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._server.sql("SELECT count(*) FROM {actions}"))
            row = await cursor.fetchone()
        return int(row[0]) if row else 0

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT number FROM {sessions} WHERE id = %s AND head_hash = %s FOR UPDATE"
                ),
                (head.session_id, head.hash),
            )
            found = await cursor.fetchone()
            if found is None:
                return False
            await db.execute(self._server.sql("DELETE FROM {actions} WHERE session = %s"), found)
            await add_actions(self._server, db, found[0], rows)
        return True

    async def rebuild_is_due(self) -> bool:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql("SELECT value FROM {meta} WHERE name = 'register_due'")
            )
            row = await cursor.fetchone()
        return row is not None and row[0] > 0

    async def rebuilt(self) -> None:
        async with self._server.transaction() as db:
            await db.execute(
                self._server.sql("UPDATE {meta} SET value = 0 WHERE name = 'register_due'")
            )

    async def heads(self) -> list[Head]:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql("SELECT id, head_seq, head_hash FROM {sessions} ORDER BY number")
            )
            rows = await cursor.fetchall()
        return [Head(*row) for row in rows]
