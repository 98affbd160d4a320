"""Sessions in one SQLite file: the embedded default."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sopilot.adapters.sqlite_connection import SQLiteFile
from sopilot.session import (
    Batch,
    Conflict,
    Lease,
    LeaseHeld,
    LeaseLost,
    NewSession,
    SessionExists,
    SessionRecord,
    SignedHead,
    StoreCorrupt,
    UnknownSession,
    signed_head_from_json,
)
from sopilot.vm import (
    JSON,
    Head,
    SealedEvent,
    TraceError,
    canonical,
    decode_line,
    genesis,
)

_RECORD = """SELECT id, created_at, updated_at, metadata, summary, head_seq, head_hash, owner,
    lease_expires_at FROM sessions"""


class SQLiteStore:
    """``synchronous`` FULL survives a power cut after every append; NORMAL survives crashes
    of the process, and is about nine times as fast."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        busy_seconds: float = 5.0,
    ) -> None:
        self._file = SQLiteFile(Path(path), synchronous=synchronous, busy_seconds=busy_seconds)

    @property
    def path(self) -> Path:
        return self._file.path

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        start = genesis(session.id)
        async with self._file.writing() as db:
            _add_programs(db, session.programs)
            try:
                db.execute(
                    "INSERT INTO sessions (id, created_at, updated_at, metadata, summary, head_seq,"
                    " head_hash, owner, token, lease_expires_at) VALUES (?,?,?,?,'{}',-1,?,?,1,?)",
                    (session.id, now, now, _text(session.metadata), start, owner, expires),
                )
            except sqlite3.IntegrityError:
                raise SessionExists(session.id) from None
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
        async with self._file.writing() as db:
            row = db.execute(
                "SELECT owner, token, lease_expires_at FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            if row is None:
                raise UnknownSession(session_id)
            held_by, token, until = row
            if held_by and until > now and not take_over:
                raise LeaseHeld(session_id, held_by, until, now)
            db.execute(
                "UPDATE sessions SET owner = ?, token = ?, lease_expires_at = ? WHERE id = ?",
                (owner, token + 1, expires, session_id),
            )
        return Lease(session_id, owner, token + 1, expires)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._file.writing() as db:
            changed = db.execute(
                "UPDATE sessions SET lease_expires_at = ? WHERE id = ? AND token = ?",
                (expires, lease.session_id, lease.token),
            ).rowcount
            if not changed:
                raise LeaseLost(lease.session_id)
        return Lease(lease.session_id, lease.owner, lease.token, expires)

    async def release(self, lease: Lease) -> None:
        async with self._file.writing() as db:
            db.execute(
                "UPDATE sessions SET owner = '', token = token + 1, lease_expires_at = 0"
                " WHERE id = ? AND token = ?",
                (lease.session_id, lease.token),
            )

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        head = batch.head
        async with self._file.writing() as db:
            row = db.execute(
                "UPDATE sessions SET head_seq = ?, head_hash = ?, updated_at = ?, summary = ?,"
                " lease_expires_at = ? WHERE id = ? AND token = ? AND head_hash = ?"
                " RETURNING number",
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
            ).fetchone()
            if row is None:
                raise _refusal(db, lease, batch)
            number = row[0]
            for sealed, line in zip(batch.events, batch.encoded(), strict=True):
                db.execute("INSERT INTO events VALUES (?, ?, ?)", (number, sealed.event.seq, line))
            if batch.payloads:
                db.executemany(
                    "INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)",
                    ((number, ref, _text(value)) for ref, value in batch.payloads.items()),
                )
            if batch.programs:
                _add_programs(db, batch.programs)
        return Lease(lease.session_id, lease.owner, lease.token, expires)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT line FROM events WHERE session = ? AND seq > ? ORDER BY seq",
                (_number(db, session_id), after),
            ).fetchall()
        try:
            return [decode_line(line) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT ref, value FROM payloads WHERE session = ?", (_number(db, session_id),)
            ).fetchall()
        return {ref: _value(text) for ref, text in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        async with self._file.writing() as db:
            number = _number(db, session_id)
            return sum(
                db.execute(
                    "DELETE FROM payloads WHERE session = ? AND ref = ?", (number, ref)
                ).rowcount
                for ref in set(refs)
            )

    async def record(self, session_id: str) -> SessionRecord:
        async with self._file.reading() as db:
            row = db.execute(f"{_RECORD} WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return _record(row)

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._file.reading() as db:
            rows = db.execute(
                f"{_RECORD} ORDER BY created_at DESC, number DESC LIMIT ?", (limit,)
            ).fetchall()
        return [_record(row) for row in rows]

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
                (number, signed.head.seq, signed.key, _text(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT line FROM signatures WHERE session = ? ORDER BY seq, key",
                (_number(db, session_id),),
            ).fetchall()
        try:
            return [signed_head_from_json(_value(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        await self._file.close()


def _number(db: sqlite3.Connection, session_id: str) -> int:
    row = db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    return int(row[0])


def _refusal(db: sqlite3.Connection, lease: Lease, batch: Batch) -> LeaseLost | Conflict:
    row = db.execute(
        "SELECT token, head_seq FROM sessions WHERE id = ?", (lease.session_id,)
    ).fetchone()
    if row is None:
        raise UnknownSession(lease.session_id)
    if row[0] != lease.token:
        return LeaseLost(lease.session_id)
    return Conflict(lease.session_id, batch.expected.seq, row[1])


def _add_programs(db: sqlite3.Connection, programs: Mapping[str, str]) -> None:
    db.executemany("INSERT OR IGNORE INTO programs VALUES (?, ?)", programs.items())


def _record(row: Sequence[JSON]) -> SessionRecord:
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


def _text(value: JSON) -> str:
    return canonical(value).decode("utf-8", "surrogatepass")


def _value(text: str) -> JSON:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        raise StoreCorrupt("a row of the store is damaged") from None
