"""What waits in PostgreSQL: states, calls without an outcome, decisions that were left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.adapters.postgres_connection import PostgresServer
from sopilot.adapters.postgres_rows import RECORD, text_of
from sopilot.adapters.session_rows import unsettled_of, value_of
from sopilot.runtime.session import SessionRecord, UnknownSession
from sopilot.runtime.vm import JSON

_UNSETTLED = (
    RECORD + " WHERE unsettled AND (position(%s in summary) > 0 OR lease_expires_at <= %s)"
    " ORDER BY number DESC"
)


class PostgresWaiting:
    _server: PostgresServer

    async def states(self) -> dict[str, int]:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "SELECT coalesce(substring(encode(summary, 'escape')"
                    " from '\"status\":\"([a-z]+)\"'), 'new'), count(*) FROM {sessions} GROUP BY 1"
                )
            )
            return dict(await cursor.fetchall())

    async def unsettled(self, *, now: float) -> list[SessionRecord]:
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(_UNSETTLED), (b'"status":"unknown"', now))
            return unsettled_of(await cursor.fetchall(), now=now)

    async def free(self, processes: Sequence[str]) -> int:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "UPDATE {sessions} SET owner = '', token = token + 1, lease_expires_at = 0"
                    " WHERE owner <> '' AND substring(owner from '^(.+):[^:]*$') = ANY(%s)"
                ),
                (list(processes),),
            )
            return cursor.rowcount

    async def leave(self, session_id: str, decision: Mapping[str, JSON], *, at: float) -> None:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "INSERT INTO {decisions} (session, at, line)"
                    " SELECT number, %s, %s FROM {sessions} WHERE id = %s"
                ),
                (at, text_of(dict(decision)), session_id),
            )
            if cursor.rowcount != 1:
                raise UnknownSession(session_id)

    async def left(self, session_id: str) -> list[tuple[int, JSON]]:
        rows = await self._of_session(
            session_id,
            "SELECT {decisions}.number, line FROM {decisions}"
            " WHERE session = {sessions}.number AND NOT taken ORDER BY {decisions}.number",
        )
        return [(number, value_of(line)) for number, line in rows]

    async def took(self, session_id: str, numbers: Sequence[int]) -> None:
        async with self._server.connection() as db:
            await db.execute(
                self._sql("UPDATE {decisions} SET taken = true WHERE number = ANY(%s)"),
                (list(numbers),),
            )

    def _sql(self, text: str) -> bytes:
        return self._server.sql(text)

    async def _of_session(
        self, session_id: str, query: str, values: tuple[object, ...] = ()
    ) -> list[Any]:
        """Rows of one session, in one round trip: a row of nothing where there are none."""
        columns = query.removeprefix("SELECT ").partition(" FROM ")[0]
        text = (
            f"SELECT found.* FROM {{sessions}} LEFT JOIN LATERAL ({query}) AS found ON true"
            " WHERE id = %s"
        )
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(text), (*values, session_id))
            rows = await cursor.fetchall()
        if not rows:
            raise UnknownSession(session_id)
        return [] if rows[0] == (None,) * len(columns.split(",")) else rows
