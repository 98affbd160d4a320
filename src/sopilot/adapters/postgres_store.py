"""Sessions in PostgreSQL (extra ``postgres``): shared by several machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sopilot.adapters.postgres_connection import PostgresServer
from sopilot.adapters.postgres_records import PostgresRecords, add_actions, add_entries
from sopilot.runtime.records.log import NO_ACTIONS
from sopilot.runtime.session import (
    Batch,
    Conflict,
    Lease,
    LeaseHeld,
    LeaseLost,
    NewSession,
    SessionExists,
    SessionRecord,
    StoreCorrupt,
    UnknownSession,
)
from sopilot.runtime.trace import (
    Head,
    SealedEvent,
    SignedHead,
    decode_line,
    genesis,
    signed_head_from_json,
)
from sopilot.runtime.vm import JSON, TraceError, canonical

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_RECORD = (
    "SELECT id, created_at, updated_at, metadata, summary, head_seq, head_hash, owner,"
    " lease_expires_at FROM {sessions}"
)


class PostgresStore:
    """One connection, opened on first use and again after a loss.

    Text columns hold canonical JSON: ``jsonb`` would rewrite numbers and refuses
    what hashes were taken over. Events are ordered by (session, seq); nothing
    depends on a sequence, whose order is not commit order.
    """

    def __init__(self, dsn: str, *, schema: str = "sopilot", connect_seconds: float = 10.0) -> None:
        self._server = PostgresServer(dsn, schema=schema, connect_seconds=connect_seconds)
        self.records = PostgresRecords(self._server)

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        start = genesis(session.id)
        async with self._server.transaction() as db:
            await self._add_programs(db, session.programs)
            cursor = await db.execute(
                self._sql(
                    "INSERT INTO {sessions} (id, created_at, updated_at, metadata, summary,"
                    " head_seq, head_hash, owner, token, lease_expires_at)"
                    " VALUES (%s,%s,%s,%s,'{{}}',-1,%s,%s,1,%s) ON CONFLICT (id) DO NOTHING"
                ),
                (session.id, now, now, _text(session.metadata), start, owner, expires),
            )
            if cursor.rowcount != 1:
                raise SessionExists(session.id)
            created = Head(session.id, -1, start)
            await add_entries(self._server, db, now, [(created, NO_ACTIONS)])
        return Lease(session.id, owner, 1, expires)

    async def acquire(
        self,
        session_id: str,
        *,
        owner: str,
        now: float,
        lease_seconds: float,
        take_over: bool = False,
    ) -> Lease:
        expires = now + lease_seconds
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._sql(
                    "SELECT owner, token, lease_expires_at FROM {sessions} WHERE id = %s FOR UPDATE"
                ),
                (session_id,),
            )
            row = await cursor.fetchone()
            if row is None:
                raise UnknownSession(session_id)
            held_by, token, until = row
            if held_by and until > now and not take_over:
                raise LeaseHeld(session_id, held_by, until, now)
            await db.execute(
                self._sql(
                    "UPDATE {sessions} SET owner = %s, token = %s, lease_expires_at = %s"
                    " WHERE id = %s"
                ),
                (owner, token + 1, expires, session_id),
            )
        return Lease(session_id, owner, token + 1, expires)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._sql(
                    "UPDATE {sessions} SET lease_expires_at = %s WHERE id = %s AND token = %s"
                ),
                (expires, lease.session_id, lease.token),
            )
            if cursor.rowcount != 1:
                raise LeaseLost(lease.session_id)
        return lease._replace(expires_at=expires)

    async def release(self, lease: Lease) -> None:
        async with self._server.transaction() as db:
            await db.execute(
                self._sql(
                    "UPDATE {sessions} SET owner = '', token = token + 1, lease_expires_at = 0"
                    " WHERE id = %s AND token = %s"
                ),
                (lease.session_id, lease.token),
            )

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        head = batch.head
        async with self._server.transaction() as db:
            # The row lock of this update is what keeps two writers apart.
            cursor = await db.execute(
                self._sql(
                    "UPDATE {sessions} SET head_seq = %s, head_hash = %s, updated_at = %s,"
                    " summary = %s, lease_expires_at = %s"
                    " WHERE id = %s AND token = %s AND head_hash = %s RETURNING number"
                ),
                (
                    head.seq,
                    head.hash,
                    now,
                    _text(batch.summary),
                    expires,
                    lease.session_id,
                    lease.token,
                    batch.expected.hash,
                ),
            )
            row = await cursor.fetchone()
            if row is None:
                raise await self._refusal(db, lease, batch)
            number = row[0]
            await self._insert_events(db, number, batch)
            for ref, value in batch.payloads.items():
                await db.execute(
                    self._sql("INSERT INTO {payloads} VALUES (%s,%s,%s) ON CONFLICT DO NOTHING"),
                    (number, ref, _text(value)),
                )
            await self._add_programs(db, batch.programs)
            await add_actions(self._server, db, number, batch.actions)
        return lease._replace(expires_at=expires)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            cursor = await db.execute(
                self._sql("SELECT line FROM {events} WHERE session = %s AND seq > %s ORDER BY seq"),
                (number, after),
            )
            rows = await cursor.fetchall()
        try:
            return [decode_line(bytes(line).decode()) for (line,) in rows]
        except (TraceError, UnicodeDecodeError) as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            cursor = await db.execute(
                self._sql("SELECT ref, value FROM {payloads} WHERE session = %s"), (number,)
            )
            rows = await cursor.fetchall()
        return {ref: _value(value) for ref, value in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            cursor = await db.execute(
                self._sql("DELETE FROM {payloads} WHERE session = %s AND ref = ANY(%s)"),
                (number, list(refs)),
            )
            return cursor.rowcount

    async def record(self, session_id: str) -> SessionRecord:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._sql(_RECORD + " WHERE id = %s"), (session_id,))
            row = await cursor.fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return _record(row)

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._sql(
                    _RECORD + " WHERE left(id, 8) <> 'journal.'"
                    " ORDER BY created_at DESC, number DESC LIMIT %s"
                ),
                (limit,),
            )
            rows = await cursor.fetchall()
        return [_record(row) for row in rows]

    async def program(self, sha256: str) -> str:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._sql("SELECT artifact FROM {programs} WHERE sha256 = %s"), (sha256,)
            )
            row = await cursor.fetchone()
        if row is None:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return bytes(row[0]).decode()

    async def add_signature(self, signed: SignedHead) -> None:
        async with self._server.transaction() as db:
            number = await self._number(db, signed.head.session_id)
            await db.execute(
                self._sql(
                    "INSERT INTO {signatures} VALUES (%s,%s,%s,%s)"
                    " ON CONFLICT (session, seq, key) DO UPDATE SET line = EXCLUDED.line"
                ),
                (number, signed.head.seq, signed.key, _text(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            cursor = await db.execute(
                self._sql("SELECT line FROM {signatures} WHERE session = %s ORDER BY seq, key"),
                (number,),
            )
            rows = await cursor.fetchall()
        try:
            return [signed_head_from_json(_value(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        await self._server.close()

    # --- parts --------------------------------------------------------------------

    def _sql(self, text: str) -> bytes:
        return self._server.sql(text)

    async def _number(self, db: AsyncConnection, session_id: str) -> int:
        cursor = await db.execute(
            self._sql("SELECT number FROM {sessions} WHERE id = %s"), (session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return int(row[0])

    async def _insert_events(self, db: AsyncConnection, number: int, batch: Batch) -> None:
        if not batch.events:
            return
        # One statement, one round trip, however many events a step makes.
        values = ",".join(["(%s,%s,%s)"] * len(batch.events))
        parameters: list[object] = []
        for sealed, line in zip(batch.events, batch.encoded(), strict=True):
            parameters += (number, sealed.event.seq, line.encode("utf-8"))
        await db.execute(self._sql("INSERT INTO {events} VALUES " + values), parameters)

    async def _add_programs(self, db: AsyncConnection, programs: Mapping[str, str]) -> None:
        for sha256, artifact in sorted(programs.items()):
            await db.execute(
                self._sql("INSERT INTO {programs} VALUES (%s,%s) ON CONFLICT DO NOTHING"),
                (sha256, artifact.encode()),
            )

    async def _refusal(
        self, db: AsyncConnection, lease: Lease, batch: Batch
    ) -> LeaseLost | Conflict:
        cursor = await db.execute(
            self._sql("SELECT token, head_seq FROM {sessions} WHERE id = %s"), (lease.session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            raise UnknownSession(lease.session_id)
        if row[0] != lease.token:
            return LeaseLost(lease.session_id)
        return Conflict(lease.session_id, batch.expected.seq, row[1])


def _record(row: Sequence[Any]) -> SessionRecord:
    session_id, created, updated, metadata, summary, seq, digest, owner, expires = row
    return SessionRecord(
        session_id,
        created,
        updated,
        _value(metadata),
        _value(summary),
        Head(session_id, seq, digest),
        owner,
        expires,
    )


def _text(value: JSON) -> bytes:
    return canonical(value)


def _value(spelled: bytes) -> Any:
    try:
        return json.loads(bytes(spelled))
    except (ValueError, TypeError, RecursionError):
        raise StoreCorrupt("a row of the store is damaged") from None
