"""The protocol of a store, and the values that go in and out of it.

A store never reads a clock: time comes from the caller. Clocks decide only when a lease may be
taken over; the fencing token decides who may write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol, TypeGuard

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.messages.errors import UserMistake
from sopilot.records.actions import ActionRow
from sopilot.records.log import LogEntry, SealedHead, SealFile
from sopilot.records.selection import Wanted
from sopilot.trace.chain import Head, SealedEvent
from sopilot.trace.events import ABOUT
from sopilot.trace.signing import SignedHead
from sopilot.values.json import JSON, Fields


class Records(Protocol):
    """Every method may raise ``StoreUnavailable``."""

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        """Session id and row, by time, newest first."""
        ...

    async def count_actions(self) -> int: ...

    async def count_sessions(self) -> int: ...

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        """Replace a session's rows in one transaction; return False if its head is another."""
        ...

    async def heads(self) -> list[Head]:
        """The head of every session."""
        ...

    async def digests(self) -> dict[str, str]:
        """Session → ``digest_of`` its rows; sessions without a row may be left out."""
        ...

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        """The entries by number. ``create`` of the store writes a session's first entry."""
        ...

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        """Append an entry per session, with its present head, in one transaction."""
        ...

    async def add_seal(self, seal: SealedHead) -> None: ...

    async def seals(self) -> list[SealedHead]:
        """Oldest first."""
        ...


DEFAULT_INLINE_LIMIT = 16_384

DEFAULT_LEASE_SECONDS = 3.0
"""How long a killed process keeps a session from others."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a session, from its start on.

    ``by_reference`` names fields whose digests alone enter the trace; fields above ``inline_limit``
    bytes stay beside it. ``private`` keeps all contents beside it, except arguments named in
    ``columns``."""

    automation: Automation = field(default_factory=Automation)
    limits: Limits = field(default_factory=Limits)
    by_reference: frozenset[str] = frozenset()
    inline_limit: int | None = DEFAULT_INLINE_LIMIT
    lease_seconds: float = DEFAULT_LEASE_SECONDS
    private: bool = False
    columns: frozenset[str] = frozenset()
    guard: str = ""
    """How guarded calls are handled that an agent makes without a protocol: ``ask`` lists the
    missing calls, ``auto`` makes the read-only ones. Empty: a procedure must be running."""

    def as_json(self) -> dict[str, JSON]:
        own: dict[str, JSON] = (
            {"private": True, "columns": sorted(self.columns)} if self.private else {}
        )
        return {
            **own,
            **({"guard": self.guard} if self.guard else {}),
            "automation": _as_json(self.automation),
            "limits": _as_json(self.limits),
            "by_reference": sorted(self.by_reference),
            "inline_limit": self.inline_limit,
            "lease_seconds": self.lease_seconds,
        }


def _as_json(switches: Automation | Limits) -> dict[str, JSON]:
    # As `asdict`, which copies every value, and this is done for every session.
    return {item.name: getattr(switches, item.name) for item in fields(switches)}


def settings_from_json(value: JSON) -> Settings:
    """Keys that a later release added are ignored; a value of the wrong kind is refused."""
    if not isinstance(value, Mapping):
        raise UserMistake("the settings of a session must be an object")
    known = Settings()
    limit = value.get("inline_limit", known.inline_limit)
    seconds = value.get("lease_seconds", known.lease_seconds)
    names = value.get("by_reference", [])
    guard = value.get("guard", known.guard)
    columns = value.get("columns", [])
    if (
        not (limit is None or _is_number(limit))
        or not _is_number(seconds)
        or not isinstance(names, list | tuple)
        or not isinstance(columns, list | tuple)
        or guard not in ("", "ask", "auto")
    ):
        raise UserMistake("the settings of a session have a value of the wrong type")
    return Settings(
        automation=Automation(**_known(Automation, value.get("automation"), bool)),
        limits=Limits(**_known(Limits, value.get("limits"), int)),
        by_reference=frozenset(str(name) for name in names),
        inline_limit=None if limit is None else int(limit),
        lease_seconds=float(seconds),
        private=value.get("private") is True,
        columns=frozenset(map(str, columns)),
        guard=str(guard),
    )


def _known(kind: type[Automation] | type[Limits], value: JSON, wanted: type) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    results = {item.name: value[item.name] for item in fields(kind) if item.name in value}
    if any(type(item) is not wanted for item in results.values()):
        raise UserMistake("the settings of a session have a value of the wrong type")
    return results


def _is_number(value: JSON) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NOTHING: Mapping[str, Any] = {}

LOCKED = "locked"
"""The only key of an encrypted value; it holds base64 of nonce and ciphertext."""


def is_locked(value: JSON) -> bool:
    """Whether this is encrypted."""
    return isinstance(value, Mapping) and set(value) == {LOCKED}


_ERASED, _PRUNED = "erased", "pruned"
_WITHOUT_CONTENTS = (
    "format",
    "handbook",
    "goals",
    "view",
    "model",
    "programs",
    "settings",
    "requester",
)

DAMAGED = "damaged"
"""The status of a session whose row can't be read."""


def is_unresolved(summary: Mapping[str, JSON]) -> bool:
    """Whether a call may be without an outcome: on record as unknown, or open."""
    return summary.get("status") == "unknown" or bool(summary.get("open"))


class Lease(NamedTuple):
    """The right to write to a session. ``token`` grows with every change of owner."""

    session_id: str
    owner: str
    token: int
    expires_at: float


class Batch(NamedTuple):
    """The contents of one append, which is written whole or not at all.

    ``lines`` are the events as they are written, and ``head`` is the head behind them. ``payloads``
    are the values of references in the events, ``summary`` is for listings, ``programs`` are new
    artifacts by hash, ``actions`` the changed rows of the register.
    """

    expected: Head
    head: Head
    events: Sequence[SealedEvent]
    lines: Sequence[str]
    payloads: Mapping[str, JSON] = _NOTHING
    summary: Mapping[str, JSON] = _NOTHING
    programs: Mapping[str, str] = _NOTHING
    actions: Sequence[ActionRow] = ()


class Append(NamedTuple):
    """The append of one session. ``expires`` is the end of its lease afterwards."""

    lease: Lease
    batch: Batch
    now: float
    expires: float


@dataclass(frozen=True, slots=True)
class NewSession:
    """``programs`` maps a hash to the program artifact; equal programs are kept once. ``first``
    is what it begins with, on top of the head that belongs to its id."""

    id: str
    metadata: Fields
    programs: Mapping[str, str]
    first: Batch | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """``owner`` is empty while no process has the session."""

    id: str
    created_at: float
    updated_at: float
    metadata: Fields
    summary: Mapping[str, JSON]
    head: Head
    owner: str = ""
    lease_expires_at: float = 0.0

    @property
    def is_locked(self) -> bool:
        """Whether its contents are under a key that isn't at hand."""
        return LOCKED in self.metadata

    @property
    def is_erased(self) -> bool:
        return self.metadata.get(_ERASED) is not None

    @property
    def is_pruned(self) -> bool:
        """Whether its events were deleted."""
        return _PRUNED in self.metadata

    def is_running(self, now: float) -> bool:
        """Whether a process has it: its lease hasn't run out."""
        return bool(self.owner) and self.lease_expires_at > now

    @property
    def is_unfinished(self) -> bool:
        """Whether a call waits for people, or has an unknown outcome."""
        return bool(self.summary.get("waiting")) or is_unresolved(self.summary)

    def metadata_when_erased(self, at: float) -> dict[str, Any]:
        return {**self._without_contents(), _ERASED: at}

    def metadata_when_pruned(self, at: float) -> dict[str, Any]:
        return {**self._without_contents(), _PRUNED: at}

    def _without_contents(self) -> dict[str, Any]:
        stored = {name: self.metadata[name] for name in _WITHOUT_CONTENTS if name in self.metadata}
        return {**stored, "salt": "", "extra": {}}

    def as_json(self) -> dict[str, JSON]:
        """The record without the fields that only resuming needs."""
        about = {name: self.metadata.get(name) for name in ABOUT}
        return {
            "id": self.id,
            **self.summary,
            **about,
            "events": self.head.seq + 1,
            "head": self.head.hash,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "owner": self.owner or None,
            "lease_expires_at": self.lease_expires_at or None,
        }


class Store(Protocol):
    """Every method may raise ``StoreUnavailable``; those with an id ``UnknownSession``."""

    external_head: Callable[[], Awaitable[SealFile]] | None
    """Read what was sealed and sent elsewhere: a store that has less is fenced."""

    @property
    def records(self) -> Records:
        """The register of actions and the log of sessions, kept in the same transactions."""
        ...

    async def migrate(self) -> int:
        """Update the stored data to this release, with a role that may, and return the schema."""
        ...

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        """The session, its programs, what it begins with and the creator's lease in one
        transaction. The first token is 1."""
        ...

    async def acquire(
        self,
        session_id: str,
        *,
        owner: str,
        now: float,
        lease_seconds: float,
        take_over: bool = False,
    ) -> Lease:
        """Raise ``LeaseHeld`` unless the lease is free, expired, or ``take_over`` is set."""
        ...

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        """Raise ``LeaseLost``. An expired lease that no other owner took is renewed."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease back; its token writes nothing more. A lost lease is no error."""
        ...

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        """Durable when it returns; renews the lease. Raises ``LeaseLost`` or ``Conflict``."""
        ...

    async def events(self, session_id: str) -> list[SealedEvent]: ...

    async def payloads(self, session_id: str) -> dict[str, JSON]: ...

    async def erase_payloads(self, session_id: str, refs: Sequence[str]) -> int:
        """Return how many there were. The trace still verifies without them."""
        ...

    async def require_deletion(self) -> None:
        """Raise ``StoreUnavailable`` if the caller has no right to delete."""
        ...

    async def erase(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        """Erase the payloads and queued decisions of each session and replace its metadata.

        ``recorded`` is written in the same transaction. A file keeps no byte of the contents."""
        ...

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        """Delete the events of each session, and what belongs to them, and replace its metadata.

        ``recorded`` is written in the same transaction. Head, log and register stay."""
        ...

    async def record(self, session_id: str) -> SessionRecord: ...

    async def sessions(self, *, limit: int | None = 100) -> list[SessionRecord]:
        """Newest first; all of them with ``limit=None``."""
        ...

    async def states(self) -> dict[str, int]:
        """How many sessions there are of each status."""
        ...

    async def unresolved(self, *, now: float) -> list[SessionRecord]:
        """List sessions with a call whose outcome is unknown, or that is open where the lease has
        run out; newest first."""
        ...

    async def queue_decision(
        self, session_id: str, decision: Mapping[str, JSON], *, at: float
    ) -> None:
        """Queue a decision for the owner of the session. It enters the trace when the owner
        acknowledges it."""
        ...

    async def pending_decisions(self, session_id: str) -> list[tuple[int, JSON]]:
        """Queued and not acknowledged, with their numbers, oldest first."""
        ...

    async def acknowledge_decisions(self, session_id: str, numbers: Sequence[int]) -> None: ...

    async def program(self, sha256: str) -> str: ...

    async def add_signature(self, signed: SignedHead) -> None: ...

    async def signatures(self, session_id: str) -> list[SignedHead]: ...

    async def close(self) -> None: ...


_READINGS = 5


async def read_session(store: Store, session_id: str) -> tuple[SessionRecord, list[SealedEvent]]:
    """Read record and events of one moment: a session may go on between the two readings. If they
    don't fit after several attempts, the chain shows that they aren't whole."""
    record = await store.record(session_id)
    events = await store.events(session_id)
    for _ in range(_READINGS):
        if len(events) == record.head.seq + 1 or record.is_pruned:
            break
        record = await store.record(session_id)
        if len(events) != record.head.seq + 1:
            events = await store.events(session_id)
    return record, events
