"""Sessions in one SQLite file: the embedded default."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sopilot.adapters.gathering import Append
from sopilot.adapters.session_rows import record_of, unsettled_of, value_of
from sopilot.adapters.sqlite_connection import SQLiteFile
from sopilot.adapters.sqlite_copies import SQLiteCopies
from sopilot.adapters.sqlite_records import SQLiteRecords, add_actions, add_entry
from sopilot.adapters.sqlite_schema import EVENTS_PER_SESSION, SCHEMA_VERSION, UNSETTLED
from sopilot.adapters.sqlite_together import Together
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
from sopilot.runtime.vm import JSON, TraceError
from sopilot.runtime.vm.values import Fields, made, spell

_RECORD = """SELECT id, created_at, updated_at, metadata, summary, seq, hash, owner,
    lease_expires_at FROM sessions JOIN heads ON session = number"""
# Newest first by the index, which has no other order.
_UNSETTLED = f"""{_RECORD} WHERE {UNSETTLED} AND
    (lease_expires_at <= ? OR instr(summary, '"status":"unknown"') > 0) ORDER BY session DESC"""
_ITS = "session = (SELECT number FROM sessions WHERE id = ?)"


class SQLiteStore(SQLiteCopies):
    """``synchronous`` FULL survives a power cut after every append; NORMAL survives crashes
    of the process, and does not wait for the disk."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        busy_seconds: float = 5.0,
    ) -> None:
        self._file = SQLiteFile(Path(path), synchronous=synchronous, busy_seconds=busy_seconds)
        self.records = SQLiteRecords(self._file)
        self._appends = Together(self._file, self._append)
        self._numbers: dict[str, int] = {}
        """Of sessions that this store appends to: a number never changes."""

    @property
    def path(self) -> Path:
        return self._file.path

    async def migrate(self) -> int:
        """Brings the file up to this release; the schema that it has then."""
        await self._file.connection()
        return SCHEMA_VERSION

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        start = genesis(session.id)
        async with self._file.writing() as db:
            _add_programs(db, session.programs)
            try:
                number = db.execute(
                    "INSERT INTO sessions (id, created_at, metadata) VALUES (?, ?, ?)",
                    (session.id, now, spell(session.metadata)),
                ).lastrowid
            except sqlite3.IntegrityError:
                raise SessionExists(session.id) from None
            db.execute(
                "INSERT INTO heads (session, seq, hash, updated_at, owner, token,"
                " lease_expires_at, summary) VALUES (?, -1, ?, ?, ?, 1, ?, '{}')",
                (number, start, now, owner, expires),
            )
            add_entry(db, now, Head(session.id, -1, start))
            lease = Lease(session.id, owner, 1, expires)
            if session.first is not None:
                self._append(db, Append(lease, session.first, now, expires))
        return lease

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
        async with self._file.writing() as db:
            row = db.execute(
                f"SELECT owner, token, lease_expires_at FROM heads WHERE {_ITS}", (session_id,)
            ).fetchone()
            if row is None:
                raise UnknownSession(session_id)
            held_by, token, until = row
            if not isinstance(token, int) or not isinstance(until, float):
                raise StoreCorrupt(f"the lease of session {session_id} is damaged")
            if held_by and until > now and not take_over:
                raise LeaseHeld(session_id, held_by, until, now)
            db.execute(
                f"UPDATE heads SET owner = ?, token = ?, lease_expires_at = ? WHERE {_ITS}",
                (owner, token + 1, expires, session_id),
            )
        return Lease(session_id, owner, token + 1, expires)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._file.writing() as db:
            changed = db.execute(
                f"UPDATE heads SET lease_expires_at = ? WHERE {_ITS} AND token = ?",
                (expires, lease.session_id, lease.token),
            ).rowcount
            if not changed:
                raise LeaseLost(lease.session_id)
        return Lease(lease.session_id, lease.owner, lease.token, expires)

    async def release(self, lease: Lease) -> None:
        self._numbers.pop(lease.session_id, None)
        async with self._file.writing() as db:
            db.execute(
                "UPDATE heads SET owner = '', token = token + 1, lease_expires_at = 0"
                f" WHERE {_ITS} AND token = ?",
                (lease.session_id, lease.token),
            )

    async def free(self, processes: Sequence[str]) -> int:
        async with self._file.writing() as db:
            return sum(
                db.execute(
                    "UPDATE heads SET owner = '', token = token + 1, lease_expires_at = 0"
                    " WHERE owner <> '' AND substr(owner, 1, length(?1)) = ?1"
                    " AND instr(substr(owner, length(?1) + 1), ':') = 0",
                    (f"{process}:",),
                ).rowcount
                for process in processes
                if process
            )

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        await self._appends.add(lease.session_id, made(Append, (lease, batch, now, expires)))
        return made(Lease, (*lease[:3], expires))

    def _append(self, db: sqlite3.Connection, one: Append) -> None:
        lease, batch, now, expires = one
        head = batch.head
        number = self._numbers.get(lease.session_id)
        if number is None:
            number = self._numbers[lease.session_id] = _number(db, lease.session_id)
        written = db.execute(
            "UPDATE heads SET seq = ?, hash = ?, updated_at = ?, lease_expires_at = ?,"
            " summary = ? WHERE session = ? AND token = ? AND hash = ?",
            (
                head.seq,
                head.hash,
                now,
                expires,
                spell(batch.summary),
                number,
                lease.token,
                batch.expected.hash,
            ),
        ).rowcount
        if written != 1:
            raise _refusal(db, lease, batch)
        first = number * EVENTS_PER_SESSION
        for sealed, line in zip(batch.events, batch.encoded(), strict=True):
            db.execute("INSERT INTO events VALUES (?, ?)", (first + sealed.event.seq, line))
        if batch.payloads:
            db.executemany(
                "INSERT INTO payloads VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                ((number, ref, spell(value)) for ref, value in batch.payloads.items()),
            )
        if batch.programs:
            _add_programs(db, batch.programs)
        if batch.actions:
            add_actions(db, number, batch.actions)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        async with self._file.reading() as db:
            first = _number(db, session_id) * EVENTS_PER_SESSION
            rows = db.execute(
                "SELECT line FROM events WHERE place > ? AND place < ? ORDER BY place",
                (first + after, first + EVENTS_PER_SESSION),
            ).fetchall()
        try:
            return [decode_line(_whole(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT ref, value FROM payloads WHERE session = ?", (_number(db, session_id),)
            ).fetchall()
        return {ref: value_of(text) for ref, text in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        async with self._file.writing() as db:
            number = _number(db, session_id)
            return sum(
                db.execute(
                    "DELETE FROM payloads WHERE session = ? AND ref = ?", (number, ref)
                ).rowcount
                for ref in set(refs)
            )

    async def shred(self, metadata: Mapping[str, Fields]) -> None:
        async with self._file.writing() as db:
            for session_id, kept in metadata.items():
                number = _number(db, session_id)
                db.execute("DELETE FROM payloads WHERE session = ?", (number,))
                db.execute("DELETE FROM decisions WHERE session = ?", (number,))
                db.execute(
                    "UPDATE sessions SET metadata = ? WHERE number = ?", (spell(dict(kept)), number)
                )
        await self._file.write_anew()

    async def record(self, session_id: str) -> SessionRecord:
        if self._file.opened is None and not self._file.path.exists():
            raise UnknownSession(session_id)  # asked for at every opening: no table is made for it
        async with self._file.reading() as db:
            row = db.execute(f"{_RECORD} WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return record_of(row)

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._file.reading() as db:
            rows = db.execute(
                f"{_RECORD} WHERE substr(id, 1, 8) <> 'journal.' ORDER BY number DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [record_of(row) for row in rows]

    async def states(self) -> dict[str, int]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT coalesce(json_extract(summary, '$.status'), 'new'), count(*)"
                " FROM heads GROUP BY 1"
            ).fetchall()
        return dict(rows)

    async def unsettled(self, *, now: float) -> list[SessionRecord]:
        async with self._file.reading() as db:
            rows = db.execute(_UNSETTLED, (now,)).fetchall()
        return unsettled_of(rows, now=now)

    async def leave(self, session_id: str, decision: Mapping[str, JSON], *, at: float) -> None:
        async with self._file.writing() as db:
            db.execute(
                "INSERT INTO decisions (session, at, line) VALUES (?, ?, ?)",
                (_number(db, session_id), at, spell(dict(decision))),
            )

    async def left(self, session_id: str) -> list[tuple[int, JSON]]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT number, line FROM decisions WHERE session = ? AND taken = 0"
                " ORDER BY number",
                (_number(db, session_id),),
            ).fetchall()
        return [(number, value_of(line)) for number, line in rows]

    async def took(self, session_id: str, numbers: Sequence[int]) -> None:
        async with self._file.writing() as db:
            db.executemany(
                "UPDATE decisions SET taken = 1 WHERE number = ?", [(one,) for one in numbers]
            )

    async def program(self, sha256: str) -> str:
        async with self._file.reading() as db:
            row = db.execute("SELECT artifact FROM programs WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return str(row[0])

    async def add_signature(self, signed: SignedHead) -> None:
        async with self._file.writing() as db:
            number = _number(db, signed.head.session_id)
            db.execute(
                "INSERT OR REPLACE INTO signatures VALUES (?, ?, ?, ?)",
                (number, signed.head.seq, signed.key, spell(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT line FROM signatures WHERE session = ? ORDER BY seq, key",
                (_number(db, session_id),),
            ).fetchall()
        try:
            return [signed_head_from_json(value_of(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        self._numbers.clear()
        await self._file.close()


def _number(db: sqlite3.Connection, session_id: str) -> int:
    row = db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    return int(row[0])


def _refusal(db: sqlite3.Connection, lease: Lease, batch: Batch) -> LeaseLost | Conflict:
    row = db.execute(f"SELECT token, seq FROM heads WHERE {_ITS}", (lease.session_id,)).fetchone()
    if row is None:
        raise UnknownSession(lease.session_id)
    if row[0] != lease.token:
        return LeaseLost(lease.session_id)
    return Conflict(lease.session_id, batch.expected.seq, row[1])


def _add_programs(db: sqlite3.Connection, programs: Mapping[str, str]) -> None:
    db.executemany("INSERT OR IGNORE INTO programs VALUES (?, ?)", programs.items())


def _whole(line: object) -> str:
    """A damaged page can hold a row without its text, whatever the schema says."""
    if not isinstance(line, str):
        raise TraceError("its line is missing")
    return line
