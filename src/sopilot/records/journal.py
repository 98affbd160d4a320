"""Journals: entries about a store itself, such as people, handbook versions and deviations.

A journal is a session without programs: notes in a chain of hashes. So it stands in the log of
the store, is sealed and verified with it, and needs no table of its own.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    RunEnded,
    SessionExists,
    StoreCorrupt,
    TraceBroken,
    UnknownSession,
)
from sopilot.protocols import Clock
from sopilot.records.log import PREFIX, Entry
from sopilot.records.store import Append, Batch, NewSession, Settings, Store, read_session
from sopilot.trace.chain import Head, SealedEvent, seal_line, verify_chain
from sopilot.trace.events import Actor, Event
from sopilot.trace.redaction import is_reference, reference
from sopilot.values.json import JSON, plain_mapping

BESIDE = "beside"
"""Under this name an entry's details have the digest of what can be erased again."""

STATE = "journal"
_LEASE_SECONDS = 5.0
_TRIES = 200
_PAUSE_SECONDS = 0.05
Folded = TypeVar("Folded")


async def entries(store: Store, journal: str) -> list[Entry]:
    """The entries, oldest first. Raise ``TraceBroken`` for a damaged chain."""
    session_id = PREFIX + journal
    try:
        record, events = await read_session(store, session_id)
    except UnknownSession:
        return []
    broken = verify_chain(events, session_id=session_id, head=record.head)
    if broken is not None:
        raise TraceBroken(session_id, broken)
    results = []
    stored = await store.payloads(session_id) if any(map(_has_contents, events)) else {}
    for sealed in events:
        event, details = sealed.event, sealed.event.details
        if not isinstance(event.payload.get("details"), Mapping) or not event.note:
            raise StoreCorrupt(f"event {sealed.event.seq} of {session_id} isn't a note")
        if is_reference(named := details.get(BESIDE)):
            ref = str(named["$ref"])
            words = stored.get(ref)
            words = words if isinstance(words, Mapping) else {}
            details = {**details, BESIDE: {**words, "ref": ref}}
        results.append(Entry(event.seq, event.at, event.note, details))
    return results


def _has_contents(sealed: SealedEvent) -> bool:
    return is_reference(sealed.event.details.get(BESIDE))


async def folded(store: Store, journal: str, fold: Callable[[list[Entry]], Folded]) -> Folded:
    """Fold the entries into the present state. Raise ``StoreCorrupt`` for a malformed entry: a
    chain doesn't show who wrote it."""
    result = await entries(store, journal)
    try:
        return fold(result)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise StoreCorrupt(f"an entry of {PREFIX}{journal} is damaged: {problem!r}") from problem


async def write(
    store: Store,
    journal: str,
    name: str,
    details: Mapping[str, JSON],
    *,
    clock: Clock,
    beside: Mapping[str, JSON] | None = None,
    commit: Callable[[Append], Awaitable[None]] | None = None,
) -> int:
    """Write an entry, durably, and return its number. Writers take turns. ``beside`` can be erased
    again: the chain has only a digest of it. ``commit`` writes the entry in one transaction with
    the deletion that it reports."""
    session_id = PREFIX + journal
    payloads: dict[str, JSON] = {}
    if beside is not None:
        value: JSON = {**beside, "salt": secrets.token_hex(16)}
        named = reference(value)
        details, payloads = {**details, BESIDE: named}, {str(named["$ref"]): value}
    owner = f"journal:{secrets.token_hex(8)}"
    for _ in range(_TRIES):
        now = clock.now()
        try:
            lease = await store.acquire(
                session_id, owner=owner, now=now, lease_seconds=_LEASE_SECONDS
            )
            head = (await store.record(session_id)).head
            payload = {"name": name, "details": plain_mapping(details)}
            event = Event(head.seq + 1, now, Actor.OPERATOR, "note", None, "", payload)
            sealed, line = seal_line(event, head.hash)
            reached = Head(session_id, event.seq, sealed.hash)
            batch = Batch(head, reached, [sealed], [line], payloads, {"status": STATE})
            try:
                if commit is None:
                    await store.append(lease, batch, now=now, lease_seconds=_LEASE_SECONDS)
                else:
                    await commit(Append(lease, batch, now, now + _LEASE_SECONDS))
            finally:
                await store.release(lease)
            return event.seq
        except UnknownSession:
            await _create(store, session_id, owner, now)
        except (LeaseHeld, LeaseLost, Conflict):
            await asyncio.sleep(_PAUSE_SECONDS)
    raise RunEnded(f"other processes are writing to {session_id}; nothing was recorded: try again")


async def _create(store: Store, session_id: str, owner: str, now: float) -> None:
    metadata: dict[str, JSON] = {
        "format": 1,
        "handbook": "",
        "goals": [],
        "programs": {},
        "settings": Settings().as_json(),
        "salt": "",
    }
    new = NewSession(session_id, metadata, {})
    try:
        lease = await store.create(new, owner=owner, now=now, lease_seconds=_LEASE_SECONDS)
    except SessionExists:
        return
    await store.release(lease)
