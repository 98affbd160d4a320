"""Sessions in memory: the promises of a store, except durability."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    SessionExists,
    StoreCorrupt,
    UnknownSession,
)
from sopilot.records.actions import ActionRow, outcome_at
from sopilot.records.log import LogEntry, SealedHead, SealFile, digest_of, is_journal
from sopilot.records.selection import Wanted
from sopilot.records.store import Append, Batch, Lease, NewSession, SessionRecord, is_unresolved
from sopilot.trace.chain import Head, SealedEvent, genesis
from sopilot.trace.signing import SignedHead
from sopilot.values.json import JSON, Fields, made, plain_mapping, spell


@dataclass(slots=True)
class _Session:
    id: str
    created_at: float
    updated_at: float
    metadata: Mapping[str, JSON]
    head: Head
    owner: str
    lease_expires_at: float
    token: int = 1
    summary: Mapping[str, JSON] = field(default_factory=dict)
    events: list[SealedEvent] = field(default_factory=list)
    payloads: dict[str, JSON] = field(default_factory=dict)
    signatures: list[SignedHead] = field(default_factory=list)
    decisions: dict[int, JSON] = field(default_factory=dict)
    actions: dict[str, ActionRow] = field(default_factory=dict)

    @property
    def record(self) -> SessionRecord:
        return SessionRecord(
            self.id,
            self.created_at,
            self.updated_at,
            self.metadata,
            self.summary,
            self.head,
            self.owner,
            self.lease_expires_at,
        )


class MemoryRecords:
    def __init__(self, sessions: Mapping[str, _Session]) -> None:
        self._sessions = sessions
        self._log: list[LogEntry] = []
        self._seals: list[SealedHead] = []

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        results = [
            (session.id, row)
            for session in self._sessions.values()
            for row in session.actions.values()
            if _fits(row, wanted)
        ]
        return sorted(results, key=lambda item: -item[1].at)

    async def count_actions(self) -> int:
        return sum(len(session.actions) for session in self._sessions.values())

    async def count_sessions(self) -> int:
        return sum(not is_journal(session_id) for session_id in self._sessions)

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        session = self._sessions.get(head.session_id)
        if session is None or session.head != head:
            return False
        session.actions = {row.call: row for row in rows}
        return True

    async def heads(self) -> list[Head]:
        return [session.head for session in self._sessions.values()]

    async def digests(self) -> dict[str, str]:
        sessions = self._sessions.items()
        return {name: digest_of(session.actions.values()) for name, session in sessions}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        return self._log[after + 1 :]

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        for session_id in session_ids:
            session = self._sessions[session_id]
            rows = digest_of(session.actions.values())
            self._log.append(LogEntry(len(self._log), at, *session.head, rows))

    async def add_seal(self, seal: SealedHead) -> None:
        self._seals.append(seal)

    async def seals(self) -> list[SealedHead]:
        return list(self._seals)


def _fits(row: ActionRow, wanted: Wanted) -> bool:
    outcome = outcome_at(row.outcome, row.expires_at, wanted.now)
    return all(
        (
            wanted.begin is None or row.at >= wanted.begin,
            wanted.end is None or row.at < wanted.end,
            wanted.action is None or row.action == spell(wanted.action),
            wanted.outcome in (None, outcome),
            wanted.grade in (None, row.grade),
        )
    )


class MemoryStore:
    """No method awaits anything, so each one is atomic within an event loop. Writes take turns
    between threads."""

    external_head: Callable[[], Awaitable[SealFile]] | None = None

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._programs: dict[str, str] = {}
        self.records = MemoryRecords(self._sessions)
        self._turn = threading.RLock()

    async def migrate(self) -> int:
        return 0

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        with self._turn:
            if session.id in self._sessions:
                raise SessionExists(session.id)
            expires = now + lease_seconds
            self._programs.update(session.programs)
            self._sessions[session.id] = _Session(
                session.id,
                now,
                now,
                plain_mapping(session.metadata),
                Head(session.id, -1, genesis(session.id)),
                owner,
                expires,
            )
            await self.records.log_heads([session.id], at=now)
            lease = Lease(session.id, owner, 1, expires)
            if session.first is not None:
                self._append(lease, session.first, now, expires)
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
        with self._turn:
            stored = self._stored(session_id)
            if stored.owner and stored.lease_expires_at > now and not take_over:
                raise LeaseHeld(session_id, stored.owner, stored.lease_expires_at, now)
            stored.token += 1
            stored.owner = owner
            stored.lease_expires_at = now + lease_seconds
            return Lease(session_id, owner, stored.token, stored.lease_expires_at)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        with self._turn:
            owned = self._owned(lease)
            owned.lease_expires_at = now + lease_seconds
            return lease._replace(expires_at=owned.lease_expires_at)

    async def release(self, lease: Lease) -> None:
        with self._turn:
            stored = self._stored(lease.session_id)
            if stored.token == lease.token:
                stored.token += 1
                stored.owner = ""
                stored.lease_expires_at = 0.0

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        with self._turn:
            return self._append(lease, batch, now, now + lease_seconds)

    def _append(self, lease: Lease, batch: Batch, now: float, expires: float) -> Lease:
        session_id, owner, token, _ = lease
        owned = self._sessions.get(session_id)
        if owned is None or owned.token != token:
            owned = self._owned(lease)
        if owned.head != batch.expected:
            raise Conflict(lease.session_id, batch.expected.seq, owned.head.seq)
        owned.events.extend(batch.events)
        if batch.payloads:
            owned.payloads.update(plain_mapping(batch.payloads))
        if batch.programs:
            self._programs.update(batch.programs)
        owned.summary = batch.summary
        owned.head = batch.head
        for row in batch.actions:
            owned.actions[row.call] = row
        owned.updated_at = now
        owned.lease_expires_at = expires
        return made(Lease, (session_id, owner, token, expires))

    async def events(self, session_id: str) -> list[SealedEvent]:
        return list(self._stored(session_id).events)

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        return dict(self._stored(session_id).payloads)

    async def erase_payloads(self, session_id: str, refs: Sequence[str]) -> int:
        payloads = self._stored(session_id).payloads
        return sum(payloads.pop(ref, self) is not self for ref in set(refs))

    async def require_deletion(self) -> None:
        """Every caller may delete."""

    async def erase(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        if recorded is not None:
            with self._turn:
                self._append(*recorded)
        for session_id, about in metadata.items():
            stored = self._stored(session_id)
            stored.payloads.clear()
            stored.decisions.clear()
            stored.metadata = plain_mapping(about)

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self.erase(metadata, recorded)
        for session_id in metadata:
            self._stored(session_id).events.clear()

    async def record(self, session_id: str) -> SessionRecord:
        return self._stored(session_id).record

    async def sessions(self, *, limit: int | None = 100) -> list[SessionRecord]:
        newest = (
            session.record
            for session in reversed(self._sessions.values())
            if not is_journal(session.record.id)
        )
        return list(islice(newest, limit))

    async def states(self) -> dict[str, int]:
        return dict(
            Counter(
                str(session.summary.get("status", "new")) for session in self._sessions.values()
            )
        )

    async def unresolved(self, *, now: float) -> list[SessionRecord]:
        return [
            session.record
            for session in reversed(self._sessions.values())
            if is_unresolved(session.summary)
            and (session.summary.get("status") == "unknown" or not session.record.is_running(now))
        ]

    async def queue_decision(
        self, session_id: str, decision: Mapping[str, JSON], *, at: float
    ) -> None:
        with self._turn:
            queued = self._stored(session_id).decisions
            queued[len(queued)] = plain_mapping(decision)

    async def pending_decisions(self, session_id: str) -> list[tuple[int, JSON]]:
        return [pair for pair in self._stored(session_id).decisions.items() if pair[1] is not None]

    async def acknowledge_decisions(self, session_id: str, numbers: Sequence[int]) -> None:
        self._stored(session_id).decisions.update(dict.fromkeys(numbers))

    async def program(self, sha256: str) -> str:
        text = self._programs.get(sha256)
        if text is None:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return text

    async def add_signature(self, signed: SignedHead) -> None:
        signatures = self._stored(signed.head.session_id).signatures
        if signed not in signatures:
            signatures.append(signed)

    async def signatures(self, session_id: str) -> list[SignedHead]:
        return sorted(self._stored(session_id).signatures, key=lambda item: item.head.seq)

    async def close(self) -> None:
        """Nothing to close."""

    def _stored(self, session_id: str) -> _Session:
        stored = self._sessions.get(session_id)
        if stored is None:
            raise UnknownSession(session_id)
        return stored

    def _owned(self, lease: Lease) -> _Session:
        stored = self._stored(lease.session_id)
        if stored.token != lease.token:
            raise LeaseLost(lease.session_id)
        return stored
