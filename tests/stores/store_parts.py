"""What the tests of every store begin with."""

from __future__ import annotations

from collections.abc import Callable

from sopilot.records.store import Store
from sopilot.trace.chain import Head, SealedEvent, genesis, seal_all
from sopilot.trace.events import Event
from sopilot.values.json import JSON

StoreFactory = Callable[[], Store]
"""Another handle on the same stored sessions; for memory, the same store."""

Opened = Callable[[Store], Store]
"""Has the store closed when the test is over."""

OpenDurable = Callable[..., Store]
"""A store in a file or a server, by a name; the same kind for every name."""

LEASE = {"now": 100.0, "lease_seconds": 10.0}


def events(head: Head, *values: JSON) -> list[SealedEvent]:
    made = [
        Event(head.seq + 1 + n, 1.5, "runtime", "note", None, "", {"name": "x", "details": value})
        for n, value in enumerate(values)
    ]
    return seal_all(made, head.hash)


def start_of(session_id: str) -> Head:
    return Head(session_id, -1, genesis(session_id))
