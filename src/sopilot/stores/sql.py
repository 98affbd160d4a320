"""Sessions and records in a SQL database: the statements that SQLite and PostgreSQL share.

Statements name tables in braces and write values as ``?``; a transaction puts in its own spelling.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    SessionExists,
    SopilotError,
    StoreCorrupt,
    TraceError,
    UnknownSession,
)
from sopilot.records.actions import ActionRow
from sopilot.records.log import LogEntry, SealedHead, SealFile, digest_of, sealed_from_json
from sopilot.records.selection import Wanted
from sopilot.records.store import (
    DAMAGED,
    Append,
    Batch,
    Lease,
    NewSession,
    SessionRecord,
    is_unresolved,
)
from sopilot.stores.group_commit import GroupCommit, WriteRefused
from sopilot.stores.schema import EVENTS_PER_SESSION, TABLES
from sopilot.trace.chain import Head, SealedEvent, decode_line
from sopilot.trace.signing import SignedHead, signed_head_from_json
from sopilot.values.json import JSON, Fields, canonical, made, spell

Row = tuple[Any, ...]


class Create(NamedTuple):
    session: NewSession
    owner: str
    now: float
    expires: float


class Transaction(Protocol):
    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]: ...

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return how many rows were changed."""
        ...

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def batches(self, sql: str, values: Sequence[Any] = ()) -> AsyncIterator[list[Row]]: ...


Scope = AbstractAsyncContextManager[Transaction]


_RECORD = (
    "SELECT id, created_at, updated_at, metadata, summary, seq, hash, owner, lease_expires_at,"
    " status, unresolved FROM {heads} JOIN {sessions} ON session = number"
)
_ITS = "session = (SELECT number FROM {sessions} WHERE id = ?)"
ACTION_COLUMNS = tuple(TABLES["actions"].columns)[1:]
_ROW = ", ".join(ACTION_COLUMNS)
REPLACE_ACTION = " ON CONFLICT (session, call) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in ACTION_COLUMNS[1:]
)
ADD_ACTION = (
    f"INSERT INTO {{actions}} (session, {_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?){REPLACE_ACTION}"
)
_NO_JOURNAL = "substr(id, 1, 8) <> 'journal.'"
_ERASED_TABLES = ("payloads", "decisions")
PRUNED_TABLES = ("events", *_ERASED_TABLES, "signatures")
_ALL = 1 << 62
_AT_ONCE = 500
"""Values in one ``IN`` list."""


class SqlStore(ABC):
    """A store over one database. A subclass adds connections, transactions and the writes that need
    its own dialect."""

    external_head: Callable[[], Awaitable[SealFile]] | None = None

    concurrent: int
    """How many appends are in flight before further ones share a transaction."""

    def __init__(self) -> None:
        self.records = SqlRecords(self)
        self._creates: GroupCommit[Create, bool] = GroupCommit(self.create_many, concurrent=1)
        self._appends: GroupCommit[Append, bool] = GroupCommit(
            self._append_many, concurrent=self.concurrent
        )

    # --- what a database does in its own way ------------------------------------------

    @abstractmethod
    def read(self, *, snapshot: bool = False) -> Scope:
        """``snapshot``: every statement sees the same moment."""

    @abstractmethod
    def write(self, *, snapshot: bool = False) -> Scope:
        """A transaction that is durable when the block ends. Await nothing else in it."""

    @abstractmethod
    def write_once(self) -> Scope:
        """As ``write``, for one statement: one round trip."""

    @abstractmethod
    async def create_many(self, items: Sequence[Create]) -> Sequence[bool]:
        """Write sessions with what they begin with; False where the id is taken."""

    @abstractmethod
    async def append_many(self, db: Transaction, items: Sequence[Append]) -> Sequence[bool]:
        """Write batches; False for one that isn't written, because token or head is another."""

    @abstractmethod
    async def lock_log(self, db: Transaction) -> None:
        """Keep others from numbering entries until the transaction ends."""

    @abstractmethod
    async def migrate(self) -> int: ...

    @abstractmethod
    async def require_deletion(self) -> None: ...

    @abstractmethod
    async def must_compact(self, db: Transaction) -> None:
        """Note that ``compact`` has to follow this transaction, also after a crash."""

    @abstractmethod
    async def compact(self) -> None:
        """Remove every byte of deleted rows from our files."""

    @abstractmethod
    async def count_on(self, db: Transaction) -> None:
        """Set the counters behind rows that were copied with their numbers."""

    @abstractmethod
    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        """Table → rows and bytes, where they are known; ``total``: sessions and bytes."""

    @abstractmethod
    async def close(self) -> None: ...

    # --- writing a session ------------------------------------------------------------

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        if not await self._creates.write(session.id, Create(session, owner, now, expires)):
            raise SessionExists(session.id)
        return Lease(session.id, owner, 1, expires)

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        item = made(Append, (lease, batch, now, expires))
        if not await self._appends.write(lease.session_id, item):
            async with self.read() as db:
                raise await self._refusal(db, item)
        return made(Lease, (*lease[:3], expires))

    async def _append_many(self, items: Sequence[Append]) -> Sequence[bool]:
        async with self.write_once() as db:
            return await self.append_many(db, items)

    async def _refusal(self, db: Transaction, item: Append) -> SopilotError:
        lease, batch, _, _ = item
        rows = await db.rows(f"SELECT token, seq FROM {{heads}} WHERE {_ITS}", lease[:1])
        if not rows:
            return UnknownSession(lease.session_id)
        [(token, seq)] = rows
        if token != lease.token:
            return LeaseLost(lease.session_id)
        return Conflict(lease.session_id, batch.expected.seq, seq)

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
        # A damaged token that isn't a number differs from itself plus 0.
        async with self.write_once() as db:
            rows = await db.rows(
                "UPDATE {heads} SET owner = ?, token = token + 1, lease_expires_at = ?"
                f" WHERE {_ITS} AND token = token + 0"
                " AND (owner = '' OR lease_expires_at <= ? OR ? = 1) RETURNING token",
                (owner, expires, session_id, now, int(take_over)),
            )
        if rows and isinstance(rows[0][0], int):
            return Lease(session_id, owner, rows[0][0], expires)
        async with self.read() as db:
            rows = await db.rows(
                f"SELECT owner, token, lease_expires_at FROM {{heads}} WHERE {_ITS}", (session_id,)
            )
        if not rows:
            raise UnknownSession(session_id)
        held_by, token, until = rows[0]
        if not isinstance(token, int) or not isinstance(until, float):
            raise StoreCorrupt(f"the lease of session {session_id} is damaged")
        raise LeaseHeld(session_id, held_by, until, now)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self.write_once() as db:
            changed = await db.execute(
                f"UPDATE {{heads}} SET lease_expires_at = ? WHERE {_ITS} AND token = ?",
                (expires, lease.session_id, lease.token),
            )
        if not changed:
            raise LeaseLost(lease.session_id)
        return lease._replace(expires_at=expires)

    async def release(self, lease: Lease) -> None:
        async with self.write_once() as db:
            await db.execute(
                "UPDATE {heads} SET owner = '', token = token + 1, lease_expires_at = 0"
                f" WHERE {_ITS} AND token = ?",
                (lease.session_id, lease.token),
            )

    # --- reading sessions -------------------------------------------------------------

    async def record(self, session_id: str) -> SessionRecord:
        if "\0" in session_id:
            raise UnknownSession(session_id)  # PostgreSQL can't even ask for it
        async with self.read() as db:
            rows = await db.rows(f"{_RECORD} WHERE id = ?", (session_id,))
        if not rows:
            raise UnknownSession(session_id)
        return _read_record(rows[0])

    async def sessions(self, *, limit: int | None = 100) -> list[SessionRecord]:
        async with self.read() as db:
            rows = await db.rows(
                f"{_RECORD} WHERE {_NO_JOURNAL} ORDER BY number DESC LIMIT ?",
                (_ALL if limit is None else limit,),
            )
        return [_read_record(row) for row in rows]

    async def states(self) -> dict[str, int]:
        async with self.read() as db:
            return {
                str(status): count
                for status, count in await db.rows(
                    "SELECT status, count(*) FROM {heads} GROUP BY status"
                )
            }

    async def unresolved(self, *, now: float) -> list[SessionRecord]:
        async with self.read() as db:
            rows = await db.rows(
                f"{_RECORD} WHERE unresolved = 1 AND (status = 'unknown' OR lease_expires_at <= ?)"
                " ORDER BY session DESC",
                (now,),
            )
        return [_record_or_damaged(row) for row in rows]

    async def events(self, session_id: str) -> list[SealedEvent]:
        rows = await self._rows_of(
            session_id,
            "SELECT place, line FROM {sessions} LEFT JOIN {events}"
            f" ON place >= number * {EVENTS_PER_SESSION}"
            f" AND place < (number + 1) * {EVENTS_PER_SESSION} WHERE id = ? ORDER BY place",
        )
        try:
            return [decode_line(text_of(line)) for _, line in rows]
        except (TraceError, UnicodeDecodeError) as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        rows = await self._rows_of(
            session_id,
            "SELECT ref, value FROM {sessions} LEFT JOIN {payloads} ON session = number"
            " WHERE id = ?",
        )
        return {ref: _value_of(value) for ref, value in rows}

    async def signatures(self, session_id: str) -> list[SignedHead]:
        rows = await self._rows_of(
            session_id,
            "SELECT key, line FROM {sessions} LEFT JOIN {signatures} ON session = number"
            " WHERE id = ? ORDER BY seq, key",
        )
        try:
            return [signed_head_from_json(_value_of(line)) for _, line in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def program(self, sha256: str) -> str:
        async with self.read() as db:
            rows = await db.rows("SELECT artifact FROM {programs} WHERE sha256 = ?", (sha256,))
        if not rows:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return text_of(rows[0][0])

    async def _rows_of(self, session_id: str, query: str) -> list[Row]:
        """Rows of an outer join. A row without a key stands for a session without rows."""
        async with self.read() as db:
            rows = await db.rows(query, (session_id,))
        if not rows:
            raise UnknownSession(session_id)
        return rows if rows[0][0] is not None else []

    # --- beside the trace -------------------------------------------------------------

    async def queue_decision(
        self, session_id: str, decision: Mapping[str, JSON], *, at: float
    ) -> None:
        async with self.write_once() as db:
            added = await db.execute(
                "INSERT INTO {decisions} (session, at, line, acknowledged)"
                " SELECT number, ?, ?, 0 FROM {sessions} WHERE id = ?",
                (at, canonical(dict(decision)), session_id),
            )
        if not added:
            raise UnknownSession(session_id)

    async def pending_decisions(self, session_id: str) -> list[tuple[int, JSON]]:
        rows = await self._rows_of(
            session_id,
            "SELECT {decisions}.number, line FROM {sessions} LEFT JOIN {decisions}"
            " ON session = {sessions}.number AND acknowledged = 0 WHERE id = ?"
            " ORDER BY {decisions}.number",
        )
        return [(number, _value_of(line)) for number, line in rows]

    async def acknowledge_decisions(self, session_id: str, numbers: Sequence[int]) -> None:
        async with self.write() as db:
            await db.execute_many(
                "UPDATE {decisions} SET acknowledged = 1 WHERE number = ?",
                [(number,) for number in numbers],
            )

    async def add_signature(self, signed: SignedHead) -> None:
        async with self.write() as db:
            number = await _number(db, signed.head.session_id)
            await db.execute(
                "INSERT INTO {signatures} (session, seq, key, line) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (session, seq, key) DO UPDATE SET line = excluded.line",
                (number, signed.head.seq, signed.key, canonical(signed.as_json())),
            )

    async def erase_payloads(self, session_id: str, refs: Sequence[str]) -> int:
        async with self.write() as db:
            number = await _number(db, session_id)
            erased = 0
            for ref in set(refs):
                erased += await db.execute(
                    "DELETE FROM {payloads} WHERE session = ? AND ref = ?", (number, ref)
                )
        return erased

    async def erase(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self._delete(metadata, recorded, _ERASED_TABLES)

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self._delete(metadata, recorded, PRUNED_TABLES)

    async def _delete(
        self, metadata: Mapping[str, Fields], recorded: Append | None, tables: Sequence[str]
    ) -> None:
        async with self.write() as db:
            if recorded is not None and not all(await self.append_many(db, [recorded])):
                raise await self._refusal(db, recorded)
            for session_id, about in metadata.items():
                number = await _number(db, session_id)
                for table in tables:
                    where, values = own_rows(table, number)
                    await db.execute(f"DELETE FROM {{{table}}} WHERE {where}", values)
                await db.execute(
                    "UPDATE {sessions} SET metadata = ? WHERE number = ?",
                    (canonical(dict(about)), number),
                )
            await self.must_compact(db)
        await self.compact()


class SqlRecords:
    """The register of actions and the log of sessions."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        where, values = _filters(wanted)
        async with self._store.read() as db:
            rows = await db.rows(
                f"SELECT id, {_ROW} FROM {{actions}} JOIN {{sessions}} ON session = number{where}"
                " ORDER BY at DESC, session DESC, call",
                values,
            )
        return [(row[0], ActionRow(*row[1:])) for row in rows]

    async def count_actions(self) -> int:
        return await self._count("SELECT count(*) FROM {actions}")

    async def count_sessions(self) -> int:
        return await self._count(f"SELECT count(*) FROM {{sessions}} WHERE {_NO_JOURNAL}")

    async def _count(self, query: str) -> int:
        async with self._store.read() as db:
            [(count,)] = await db.rows(query)
        return int(count)

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        async with self._store.write() as db:
            # An update that changes nothing locks the head until the transaction ends.
            locked = await db.rows(
                f"UPDATE {{heads}} SET token = token WHERE {_ITS} AND hash = ? RETURNING session",
                (head.session_id, head.hash),
            )
            for (number,) in locked:
                await db.execute("DELETE FROM {actions} WHERE session = ?", (number,))
                await db.execute_many(ADD_ACTION, [(number, *row) for row in rows])
        return bool(locked)

    async def heads(self) -> list[Head]:
        async with self._store.read() as db:
            rows = await db.rows("SELECT session, seq, hash FROM {heads} ORDER BY session")
            ids = await _ids(db)
        return [Head(ids[number], seq, digest) for number, seq, digest in rows if number in ids]

    async def digests(self) -> dict[str, str]:
        async with self._store.read() as db:
            rows = await db.rows(f"SELECT session, {_ROW} FROM {{actions}}")
            ids = await _ids(db)
        return {ids.get(number, ""): digest for number, digest in _digests(rows).items()}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        async with self._store.read() as db:
            rows = await db.rows(
                "SELECT number, at, session, seq, hash, actions FROM {log} WHERE number > ?"
                " ORDER BY number",
                (after,),
            )
        return list(map(LogEntry._make, rows))

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        # Head and rows of a session change together, so both are read from one snapshot.
        async with self._store.write(snapshot=True) as db:
            await self._store.lock_log(db)
            [(first,)] = await db.rows("SELECT coalesce(max(number) + 1, 0) FROM {log}")
            heads: list[Row] = []
            for some in _parts(session_ids):
                heads += await db.rows(
                    "SELECT number, id, seq, hash FROM {sessions} JOIN {heads}"
                    f" ON session = number WHERE id IN ({_marks(some)})",
                    some,
                )
            heads.sort()
            rows: list[Row] = []
            for some in _parts([number for number, *_ in heads]):
                rows += await db.rows(
                    f"SELECT session, {_ROW} FROM {{actions}} WHERE session IN ({_marks(some)})",
                    some,
                )
            digests = _digests(rows)
            await db.execute_many(
                "INSERT INTO {log} (number, at, session, seq, hash, actions)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (first + place, at, *head, digests.get(number) or digest_of(()))
                    for place, (number, *head) in enumerate(heads)
                ],
            )

    async def add_seal(self, seal: SealedHead) -> None:
        async with self._store.write_once() as db:
            await db.execute("INSERT INTO {seals} (line) VALUES (?)", (canonical(seal.as_json()),))

    async def seals(self) -> list[SealedHead]:
        async with self._store.read() as db:
            rows = await db.rows("SELECT line FROM {seals} ORDER BY number")
        try:
            return [sealed_from_json(_value_of(line)) for (line,) in rows]
        except (TypeError, StoreCorrupt, TraceError):
            raise StoreCorrupt("a sealed head of the store is damaged") from None


def own_rows(table: str, number: int) -> tuple[str, tuple[int, ...]]:
    """Return the condition, and its values, for the rows of one session."""
    if table == "events":
        first = number * EVENTS_PER_SESSION
        return "place >= ? AND place < ?", (first, first + EVENTS_PER_SESSION)
    return ("number = ?" if table == "sessions" else "session = ?"), (number,)


def state_columns(summary: Mapping[str, JSON]) -> tuple[str, int]:
    """``status`` and ``unresolved`` of a session's head."""
    return str(summary.get("status", "new")), int(is_unresolved(summary))


def encoded_lines(batch: Batch) -> list[bytes]:
    try:
        return [line.encode() for line in batch.lines]
    except UnicodeEncodeError as problem:
        raise WriteRefused(f"this cannot be written as UTF-8: {problem}") from problem


def text_of(stored: object) -> str:
    """Decode a document. A damaged page can hold a row without one, despite the schema."""
    if isinstance(stored, str):
        return stored
    if not isinstance(stored, bytes):
        raise TraceError("its line is missing")
    return stored.decode()


async def _number(db: Transaction, session_id: str) -> int:
    rows = await db.rows("SELECT number FROM {sessions} WHERE id = ?", (session_id,))
    if not rows:
        raise UnknownSession(session_id)
    return int(rows[0][0])


async def _ids(db: Transaction) -> dict[int, str]:
    """Number → id. Joined here: the database would read or sort the long metadata, too."""
    return dict(await db.rows("SELECT number, id FROM {sessions}"))


def _digests(rows: Iterable[Row]) -> dict[int, str]:
    """Session → digest of its rows, from rows that begin with the session."""
    grouped: dict[int, list[Any]] = {}
    for number, *row in rows:
        grouped.setdefault(number, []).append(row)
    return {number: digest_of(own) for number, own in grouped.items()}


def _parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE)]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


_OUTCOME_AT = "CASE WHEN outcome = 'held' AND expires_at < ? THEN 'expired' ELSE outcome END = ?"
"""As ``outcome_at``: at that time, with that outcome."""


def _filters(wanted: Wanted) -> tuple[str, list[object]]:
    """Return a WHERE clause, or nothing, and its values."""
    clauses: dict[str, list[object]] = {
        "at >= ?": [wanted.begin],
        "at < ?": [wanted.end],
        "action = ?": [None if wanted.action is None else spell(wanted.action)],
        _OUTCOME_AT: [wanted.now, wanted.outcome],
        "proof = ?": [wanted.grade],
    }
    chosen = {clause: values for clause, values in clauses.items() if values[-1] is not None}
    where = f" WHERE {' AND '.join(chosen)}" if chosen else ""
    return where, [value for values in chosen.values() for value in values]


def _read_record(row: Row) -> SessionRecord:
    session_id, created, updated, metadata, summary, seq, digest, owner, expires, *columns = row
    try:
        about, state = _value_of(metadata), _value_of(summary)
    except StoreCorrupt:
        about = state = None
    whole = isinstance(about, dict) and isinstance(state, dict)
    if not whole or columns != [*state_columns(state)]:
        raise StoreCorrupt(f"the row of session {session_id} is damaged")
    head = Head(session_id, seq, digest)
    return SessionRecord(session_id, created, updated, about, state, head, owner, expires)


def _record_or_damaged(row: Row) -> SessionRecord:
    """A damaged row hides no other session, and is itself listed as damaged."""
    try:
        return _read_record(row)
    except StoreCorrupt:
        session_id, created, updated, _, _, seq, digest, owner, expires, *_ = row
        head = Head(session_id, seq, digest)
        state = {"status": DAMAGED}
        return SessionRecord(session_id, created, updated, {}, state, head, owner, expires)


def _value_of(stored: Any) -> Any:
    try:
        return json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        raise StoreCorrupt("a row of the store is damaged") from None
