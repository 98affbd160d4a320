"""What the tests of every store begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sopilot.records.store import Batch, Lease, NewSession, Store
from sopilot.trace.chain import Head, SealedEvent, encode_line, genesis, seal_all
from sopilot.trace.events import Event
from sopilot.values.json import JSON, Fields

StoreFactory = Callable[[], Store]
"""Another handle on the same stored sessions; for memory, the same store."""

AnyStore = TypeVar("AnyStore", bound=Store)


class Closing(Protocol):
    """Has the store closed when the test is over."""

    def __call__(self, store: AnyStore) -> AnyStore: ...


LEASE = {"now": 100.0, "lease_seconds": 10.0}


def events(head: Head, *values: JSON) -> list[SealedEvent]:
    made = [
        Event(head.seq + 1 + n, 1.5, "runtime", "note", None, "", {"name": "x", "details": value})
        for n, value in enumerate(values)
    ]
    return seal_all(made, head.hash)


def start_of(session_id: str) -> Head:
    return Head(session_id, -1, genesis(session_id))


def batch_on(head: Head, *notes: JSON, **batch: Any) -> Batch:
    sealed = events(head, *notes)
    lines = [encode_line(event) for event in sealed]
    return Batch(head, head_of(sealed, head), sealed, lines, **batch)


def head_of(sealed: Sequence[SealedEvent], before: Head) -> Head:
    if not sealed:
        return before
    return Head(before.session_id, sealed[-1].event.seq, sealed[-1].hash)


def opening(
    name: str, *notes: JSON, metadata: Fields | None = None,
    programs: Mapping[str, str] | None = None, **batch: Any,
) -> NewSession:  # fmt: skip
    """A session that begins with these notes; ``batch`` is what else its first batch holds."""
    start = start_of(name)
    first = batch_on(start, *notes, **batch) if notes or batch else None
    return NewSession(name, metadata or {}, programs or {}, first)


@dataclass
class Writer:
    """Writes notes to a session by hand; knows its lease and its head."""

    store: Store
    lease: Lease
    head: Head

    @classmethod
    async def begin(
        cls, store: Store, new: NewSession, *, owner: str = "me", now: float = 100.0,
        lease_seconds: float = 10.0,
    ) -> Writer:  # fmt: skip
        lease = await store.create(new, owner=owner, now=now, lease_seconds=lease_seconds)
        return cls(store, lease, start_of(new.id) if new.first is None else new.first.head)

    @classmethod
    async def take(cls, store: Store, name: str, owner: str) -> Writer:
        """Take over a session that is empty so far."""
        lease = await store.acquire(name, owner=owner, take_over=True, **LEASE)
        return cls(store, lease, start_of(name))

    def batch(self, *notes: JSON, **batch: Any) -> Batch:
        return batch_on(self.head, *notes, **batch)

    async def append(
        self, *notes: JSON, now: float = 100.0, lease_seconds: float = 10.0, **batch: Any
    ) -> Batch:
        written = self.batch(*notes, **batch)
        self.lease = await self.store.append(
            self.lease, written, now=now, lease_seconds=lease_seconds
        )
        self.head = written.head
        return written
