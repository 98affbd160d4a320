"""Sessions in PostgreSQL (extra ``postgres``): shared by several machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sopilot.adapters.gathering import Append, Gathered, given
from sopilot.adapters.postgres_connection import PostgresServer, StatementRefused
from sopilot.adapters.postgres_copies import PostgresCopies
from sopilot.adapters.postgres_many import (
    ACQUIRE_MANY,
    APPEND_MANY,
    CREATE_MANY,
    LOG_MANY,
    RELEASE_MANY,
    Acquire,
    Create,
    acquired,
    appended,
    created,
    released,
)
from sopilot.adapters.postgres_records import PostgresRecords, erase_contents, upsert_of
from sopilot.adapters.postgres_rows import RECORD, array_of, text_of
from sopilot.adapters.postgres_waiting import PostgresWaiting
from sopilot.adapters.session_rows import record_of, value_of
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
    SealedEvent,
    SignedHead,
    decode_line,
    signed_head_from_json,
)
from sopilot.runtime.vm import JSON, TraceError
from sopilot.runtime.vm.values import Fields

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_AT_ONCE = 4
"""Appends that are under way by themselves; more of them go together."""
_TAKEN = "23505"
"""PostgreSQL's code for a key that is there already."""


_APPEND = (
    "WITH head AS (UPDATE {sessions} SET head_seq = %s, head_hash = %s, updated_at = %s,"
    " summary = %s, lease_expires_at = %s"
    " WHERE id = %s AND token = %s AND head_hash = %s RETURNING number)"
)
_WITH_EVENTS = (
    ", written AS (INSERT INTO {events} SELECT number, new.seq, new.line"
    " FROM head, unnest(%s::bigint[], %s::bytea[]) AS new (seq, line))"
)
_WITH_PAYLOADS = (
    ", kept AS (INSERT INTO {payloads} SELECT number, new.ref, new.value"
    " FROM head, unnest(%s::text[], %s::bytea[]) AS new (ref, value) ON CONFLICT DO NOTHING)"
)
_WITH_PROGRAMS = (
    ", known AS (INSERT INTO {programs} SELECT new.sha256, new.artifact"
    " FROM head, unnest(%s::text[], %s::bytea[]) AS new (sha256, artifact)"
    " ON CONFLICT DO NOTHING)"
)


class PostgresStore(PostgresWaiting, PostgresCopies):
    """At most ``pool_size`` connections, opened on use and again after a loss, for any number of
    threads and event loops. Who is only ``reading`` makes no tables and renews none.

    Text columns hold canonical JSON: ``jsonb`` would rewrite numbers and refuses
    what hashes were taken over. Events are ordered by (session, seq); nothing
    depends on a sequence, whose order is not commit order. An append is one
    statement, and so one round trip and one transaction.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "sopilot",
        connect_seconds: float = 10.0,
        pool_size: int = 10,
        reading: bool = False,
    ) -> None:
        self._server = PostgresServer(
            dsn, schema=schema, wait=connect_seconds, pool_size=pool_size, reading=reading
        )
        self.records = PostgresRecords(self._server)
        self._creates: Gathered[Create, Lease] = Gathered(
            self._create, self._create_many, apart=StatementRefused, at_once=1
        )
        self._reads: Gathered[str, SessionRecord] = Gathered(
            self._record, self._record_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._acquires: Gathered[Acquire, Lease] = Gathered(
            self._acquire, self._acquire_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._releases: Gathered[Lease, None] = Gathered(
            self._release, self._release_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._appends: Gathered[Append, Lease] = Gathered(
            self._append, self._append_many, apart=StatementRefused, at_once=_AT_ONCE
        )

    async def migrate(self) -> int:
        """Makes or renews the tables, with a role that may; the schema that they have then."""
        return await self._server.migrate()

    async def grant(
        self,
        *,
        runtime: Sequence[str] = (),
        auditors: Sequence[str] = (),
        keepers: Sequence[str] = (),
    ) -> None:
        """Roles that run sessions, that only read, and that may throw away as well."""
        await self._server.grant(runtime=runtime, auditors=auditors, keepers=keepers)

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        return await self._creates.write(Create(session, owner, now, now + lease_seconds))

    async def _create(self, one: Create) -> Lease:
        try:
            (made,) = await self._create_many([one])
            return made
        except StatementRefused as problem:
            if getattr(problem.__cause__, "sqlstate", None) == _TAKEN:
                raise SessionExists(one.session.id) from None
            raise

    async def _create_many(self, items: Sequence[Create]) -> list[Lease]:
        # Sent in one go: who numbers the log does so while nobody else can.
        async with self._server.connection() as db:
            known = self._server.known_programs(db)
            sessions, entries = created(items, known)
            async with db.pipeline(), db.transaction():
                await db.execute(self._sql(CREATE_MANY), sessions)
                await db.execute(self._sql("LOCK TABLE {log} IN EXCLUSIVE MODE"))
                await db.execute(self._sql(LOG_MANY), entries)
            known.update(*(one.session.programs for one in items))
        return [Lease(one.session.id, one.owner, 1, one.expires) for one in items]

    async def acquire(
        self,
        session_id: str,
        *,
        owner: str,
        now: float,
        lease_seconds: float,
        take_over: bool = False,
    ) -> Lease:
        wanted = Acquire(session_id, owner, now, now + lease_seconds, take_over)
        return await self._acquires.write(wanted)

    async def _acquire(self, one: Acquire) -> Lease:
        return given(*await self._acquire_many([one]))

    async def _acquire_many(self, items: Sequence[Acquire]) -> list[Lease | Exception]:
        # Of several who want one session the first has it, whatever they call themselves.
        first = {one.session_id: one for one in reversed(items)}
        async with self._server.connection() as db:
            wanted = acquired([first[name] for name in sorted(first)])
            cursor = await db.execute(self._sql(ACQUIRE_MANY), wanted)
            tokens: dict[str, int] = dict(await cursor.fetchall())
            return [
                Lease(one.session_id, one.owner, tokens[one.session_id], one.expires)
                if one.session_id in tokens and one is first[one.session_id]
                else await self._held(db, one)
                for one in items
            ]

    async def _held(self, db: AsyncConnection, one: Acquire) -> LeaseHeld | UnknownSession:
        cursor = await db.execute(
            self._sql("SELECT owner, lease_expires_at FROM {sessions} WHERE id = %s"),
            (one.session_id,),
        )
        row = await cursor.fetchone()
        if row is None:
            return UnknownSession(one.session_id)
        return LeaseHeld(one.session_id, row[0], row[1], one.now)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._server.connection() as db:
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
        await self._releases.write(lease)

    async def _release(self, lease: Lease) -> None:
        await self._release_many([lease])

    async def _release_many(self, leases: Sequence[Lease]) -> list[Exception | None]:
        async with self._server.connection() as db:
            await db.execute(self._sql(RELEASE_MANY), released(sorted(leases)))
        return [None] * len(leases)

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        return await self._appends.write(Append(lease, batch, now, now + lease_seconds))

    async def _append_many(self, items: Sequence[Append]) -> list[Lease | Exception]:
        if any(one.batch.programs for one in items):
            raise StatementRefused("programs come by themselves")
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(APPEND_MANY), appended(items))
            written = {row[0] for row in await cursor.fetchall()}
            return [
                one.lease._replace(expires_at=one.expires)
                if one.lease.session_id in written
                else await self._refusal(db, one.lease, one.batch)
                for one in items
            ]

    async def _append(self, one: Append) -> Lease:
        lease, batch, now, expires = one
        head = batch.head
        parts, rest = _rest_of(batch)
        # The row lock of the update is what keeps two writers apart.
        values = [
            head.seq, head.hash, now, text_of(batch.summary), expires,
            lease.session_id, lease.token, batch.expected.hash, *rest,
        ]  # fmt: skip
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(f"{_APPEND}{parts} SELECT number FROM head"), values
            )
            if await cursor.fetchone() is None:
                raise await self._refusal(db, lease, batch)
        return lease._replace(expires_at=expires)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        rows = await self._of_session(
            session_id,
            "SELECT line FROM {events} WHERE session = number AND seq > %s ORDER BY seq",
            (after,),
        )
        try:
            return [decode_line(bytes(line).decode()) for (line,) in rows]
        except (TraceError, UnicodeDecodeError) as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        rows = await self._of_session(
            session_id, "SELECT ref, value FROM {payloads} WHERE session = number"
        )
        return {ref: value_of(value) for ref, value in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        forgotten = self._sql("DELETE FROM {payloads} WHERE session = %s AND ref = ANY(%s)")
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            return (await db.execute(forgotten, (number, list(refs)))).rowcount

    async def shred(self, metadata: Mapping[str, Fields]) -> None:
        await erase_contents(self._server, {one: text_of(kept) for one, kept in metadata.items()})

    async def record(self, session_id: str) -> SessionRecord:
        if "\0" in session_id:
            raise UnknownSession(session_id)  # no text of PostgreSQL has that character
        return await self._reads.write(session_id)

    async def _record(self, session_id: str) -> SessionRecord:
        return given(*await self._record_many([session_id]))

    async def _record_many(self, ids: Sequence[str]) -> list[SessionRecord | Exception]:
        async with self._server.connection() as db:
            wanted = array_of(dict.fromkeys(ids))
            cursor = await db.execute(
                self._sql(RECORD + " WHERE id = ANY(%s::text[])"), (wanted,), binary=True
            )
            rows = {row[0]: row for row in await cursor.fetchall()}
        return [_record_or_problem(one, rows.get(one)) for one in ids]

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    RECORD + " WHERE left(id, 8) <> 'journal.' ORDER BY number DESC LIMIT %s"
                ),
                (limit,),
            )
            rows = await cursor.fetchall()
        return [record_of(row) for row in rows]

    async def program(self, sha256: str) -> str:
        async with self._server.connection() as db:
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
                (number, signed.head.seq, signed.key, text_of(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        rows = await self._of_session(
            session_id, "SELECT line FROM {signatures} WHERE session = number ORDER BY seq, key"
        )
        try:
            return [signed_head_from_json(value_of(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        await self._server.close()

    # --- parts --------------------------------------------------------------------

    async def _number(self, db: AsyncConnection, session_id: str) -> int:
        cursor = await db.execute(
            self._sql("SELECT number FROM {sessions} WHERE id = %s"), (session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return int(row[0])

    async def _refusal(
        self, db: AsyncConnection, lease: Lease, batch: Batch
    ) -> LeaseLost | Conflict | UnknownSession:
        cursor = await db.execute(
            self._sql("SELECT token, head_seq FROM {sessions} WHERE id = %s"), (lease.session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            return UnknownSession(lease.session_id)
        if row[0] != lease.token:
            return LeaseLost(lease.session_id)
        return Conflict(lease.session_id, batch.expected.seq, row[1])


def _record_or_problem(session_id: str, row: Sequence[Any] | None) -> SessionRecord | Exception:
    try:
        return UnknownSession(session_id) if row is None else record_of(row)
    except StoreCorrupt as problem:
        return problem


def _rest_of(batch: Batch) -> tuple[str, list[Any]]:
    """What follows the session's row (``head``) in the same statement, and its values."""
    parts = [_WITH_EVENTS]
    values: list[Any] = [
        array_of(sealed.event.seq for sealed in batch.events),
        array_of(line.encode("utf-8") for line in batch.encoded()),
    ]
    if batch.payloads:
        parts.append(_WITH_PAYLOADS)
        values += [array_of(batch.payloads), array_of(map(text_of, batch.payloads.values()))]
    if batch.programs:
        parts.append(_WITH_PROGRAMS)
        values += [array_of(batch.programs), array_of(map(str.encode, batch.programs.values()))]
    for number, row in enumerate(batch.actions):
        parts.append(f", action_{number} AS ({upsert_of(row, 'head')})")
        values += row
    return "".join(parts), values
