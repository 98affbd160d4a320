"""The register of actions and the log of sessions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sopilot.adapters.postgres_connection import PostgresServer
from sopilot.adapters.record_filters import digests_of, filters, read_seal
from sopilot.runtime.records import ActionRow, Wanted
from sopilot.runtime.records.log import NO_ACTIONS, LogEntry, SealedHead
from sopilot.runtime.trace import Head
from sopilot.runtime.vm.values import spell

if TYPE_CHECKING:
    from psycopg import AsyncConnection

ON_CONFLICT = (
    "ON CONFLICT (session, call) DO UPDATE SET at = EXCLUDED.at,"
    " action = EXCLUDED.action, outcome = EXCLUDED.outcome,"
    " grade = EXCLUDED.grade, expires_at = EXCLUDED.expires_at,"
    " arguments = EXCLUDED.arguments, rest = EXCLUDED.rest"
)
_UPSERT = f"INSERT INTO {{actions}} %s {ON_CONFLICT}"


def upsert_of(row: ActionRow, source: str) -> str:
    """The statement that writes this row for the session whose ``number`` is in ``source``."""
    return _UPSERT % f"SELECT number, {_marks(row)} FROM {source}"


async def add_actions(
    server: PostgresServer, db: AsyncConnection, number: int, rows: Sequence[ActionRow]
) -> None:
    for row in rows:
        await db.execute(server.sql(_UPSERT % f"VALUES (%s,{_marks(row)})"), (number, *row))


def _marks(row: ActionRow) -> str:
    return ",".join(["%s"] * len(row))


async def add_entries(
    server: PostgresServer,
    db: AsyncConnection,
    at: float,
    stood: Sequence[tuple[Head, str]],
) -> None:
    await db.execute(server.sql("LOCK TABLE {log} IN EXCLUSIVE MODE"))
    cursor = await db.execute(server.sql("SELECT coalesce(max(number) + 1, 0) FROM {log}"))
    row = await cursor.fetchone()
    first = int(row[0]) if row else 0
    async with db.cursor() as writing:
        await writing.executemany(
            server.sql("INSERT INTO {log} VALUES (%s,%s,%s,%s,%s,%s)"),
            [(first + n, at, *head, actions) for n, (head, actions) in enumerate(stood)],
        )


async def erase_contents(server: PostgresServer, metadata: Mapping[str, bytes]) -> None:
    """Of each session its payloads and what was left for it; this metadata stays."""
    own = "session = (SELECT number FROM {sessions} WHERE id = %s)"
    async with server.transaction() as db:
        for session_id, kept in metadata.items():
            for table in ("{payloads}", "{decisions}"):
                await db.execute(server.sql(f"DELETE FROM {table} WHERE {own}"), (session_id,))
            changed = server.sql("UPDATE {sessions} SET metadata = %s WHERE id = %s")
            await db.execute(changed, (kept, session_id))


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
        return await self._count("SELECT count(*) FROM {actions}")

    async def count_sessions(self) -> int:
        return await self._count("SELECT count(*) FROM {sessions} WHERE left(id, 8) <> 'journal.'")

    async def _count(self, query: str) -> int:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._server.sql(query))
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
                self._server.sql("SELECT id, head_seq, head_hash FROM {sessions} ORDER BY number"),
                binary=True,
            )
            rows = await cursor.fetchall()
        return [Head(*row) for row in rows]

    async def digests(self) -> dict[str, str]:
        async with self._server.transaction() as db:
            return await self._digests(db)

    async def _digests(self, db: AsyncConnection) -> dict[str, str]:
        """Joined and ordered here: sessions have long rows, which the server would sort with the
        others, and texts it compares by the rules of a language."""
        cursor = await db.execute(
            self._server.sql("SELECT number, id FROM {sessions}"), binary=True
        )
        ids: dict[int, str] = dict(await cursor.fetchall())
        cursor = await db.execute(
            self._server.sql(
                "SELECT session, call, at, action, outcome, grade, expires_at, arguments, rest"
                " FROM {actions}"
            ),
            binary=True,
        )
        found = digests_of(await cursor.fetchall())
        return {ids.get(number, ""): digest for number, digest in found.items()}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT number, at, session, seq, hash, actions FROM {log}"
                    " WHERE number > %s ORDER BY number"
                ),
                (after,),
                binary=True,
            )
            rows = await cursor.fetchall()
        return list(map(LogEntry._make, rows))

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        async with self._server.transaction() as db:
            # Head and rows of a session change together: its row is locked until both are read.
            cursor = await db.execute(
                self._server.sql(
                    "SELECT id, head_seq, head_hash FROM {sessions} WHERE id = ANY(%s)"
                    " ORDER BY number FOR SHARE"
                ),
                (list(session_ids),),
            )
            heads = [Head(*row) for row in await cursor.fetchall()]
            digests = await self._digests(db)
            stood = [(head, digests.get(head.session_id, NO_ACTIONS)) for head in heads]
            await add_entries(self._server, db, at, stood)

    async def add_seal(self, seal: SealedHead) -> None:
        async with self._server.transaction() as db:
            await db.execute(
                self._server.sql("INSERT INTO {seals} (line) VALUES (%s)"),
                (spell(seal.as_json()),),
            )

    async def seals(self) -> list[SealedHead]:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._server.sql("SELECT line FROM {seals} ORDER BY number"))
            rows = await cursor.fetchall()
        return [read_seal(line) for (line,) in rows]
