"""A fenced store holds the irreversible calls of its earlier sessions until a person releases them.

An old copy of a store doesn't know what its sessions did after it was made. A session that goes
on from there would make those calls a second time, or change what an open one rests on. `store
restore` fences the store by itself; an operator fences one that was restored by other means; and a
store that is behind its external head (``external_head``) is fenced when the next irreversible
call is about to be made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sopilot.machine.call_ledger import CallLedger
from sopilot.machine.replay import whole_events
from sopilot.messages.errors import SopilotError, mistake, unnamed
from sopilot.protocols import Clock
from sopilot.records.journal import folded, write
from sopilot.records.log import Entry, SealFile, head_of, lines_of
from sopilot.records.people import Principal, load_people, written_by
from sopilot.records.pruning import ENDED
from sopilot.records.store import SessionRecord, Store
from sopilot.values.json import JSON, same_name

JOURNAL = "fence"
_FENCED, _RELEASED = "fenced", "released"


@dataclass(slots=True)
class Fence:
    """Sessions that were opened up to ``before`` are held, but for the ``released`` ones."""

    before: float = -math.inf
    why: str = ""
    released: set[str] = field(default_factory=set)
    heads: set[str] = field(default_factory=set)
    """Roots of external heads that the store was fenced for."""

    def holds(self, session_id: str, created_at: float) -> bool:
        return created_at <= self.before and session_id not in self.released

    def holds_open(self, record: SessionRecord) -> bool:
        """Whether it holds a session that hasn't ended."""
        ended = record.summary.get("status") in ENDED
        return not ended and self.holds(record.id, record.created_at)


async def load_fence(store: Store) -> Fence:
    return await folded(store, JOURNAL, _fold)


async def fenced_sessions(
    store: Store, *, but: Collection[SessionRecord] = ()
) -> list[SessionRecord]:
    """Sessions that haven't ended and that the fence holds, newest first."""
    fence = await load_fence(store)
    if fence.before == -math.inf:
        return []
    known = {item.id for item in but}
    every = await store.sessions(limit=None)
    return [item for item in every if fence.holds_open(item) and item.id not in known]


def _fold(entries: Sequence[Entry]) -> Fence:
    fence = Fence()
    for entry in entries:
        sessions, before = entry.details.get("sessions"), entry.details.get("before")
        if entry.name == _FENCED and isinstance(before, int | float):
            heads = {*fence.heads, str(entry.details.get("head") or "")} - {""}
            fence = Fence(float(before), str(entry.details["why"]), heads=heads)
        elif entry.name == _RELEASED and isinstance(sessions, list | tuple):
            fence.released.update(map(str, sessions))
        elif entry.name == _RELEASED:
            fence = Fence(heads=fence.heads)
    return fence


async def fence_store(
    store: Store, why: str, *, clock: Clock, who: Principal | None = None, head: str = ""
) -> None:
    """Fence every session that the store has now, whatever the clocks of their openers showed."""
    opened = [session.created_at for session in await store.sessions(limit=None)]
    details: dict[str, JSON] = {"before": max([clock.now(), *opened]), "why": why, "head": head}
    await write(store, JOURNAL, _FENCED, {**details, **written_by(who)}, clock=clock)


async def release_sessions(
    store: Store,
    session_ids: Sequence[str],
    why: str,
    *,
    by: str,
    who: Principal | None,
    clock: Clock,
) -> list[str]:
    """Release these sessions, or all of them if none is named. Return the released ones.

    A release may let a call be made twice, so a session's requesters can't give it. A session
    that has ended in an old copy may have gone on since, so "all" includes it."""
    people, fence = await load_people(store), await load_fence(store)
    by = people.name_of(by, who)
    if not same_name(by):
        raise unnamed()
    if who is None and "identity" in people.demands:
        raise mistake(
            "unauthenticated", "this store requires a proof of identity for a release",
            help="pass a token: sopilot --token-file",
        )  # fmt: skip
    every = await store.sessions(limit=None) if not session_ids else []
    chosen = [await store.record(session_id) for session_id in session_ids]
    chosen += [item for item in every if fence.holds(item.id, item.created_at)]
    for record in chosen:
        if not fence.holds(record.id, record.created_at):
            raise mistake("not-fenced", f"session {record.id} is not fenced")
        if not people.names_of(by).isdisjoint(await _requesters(store, record)):
            raise mistake(
                "party", f"`{by}` asked for session {record.id}",
                help="a person who isn't involved must release it",
            )  # fmt: skip
    ids: list[JSON] = [item.id for item in chosen]
    values: dict[str, JSON] = {"sessions": ids if session_ids else None, "why": why}
    await write(store, JOURNAL, _RELEASED, {**values, **written_by(who, by)}, clock=clock)
    return [item.id for item in chosen]


async def _requesters(store: Store, record: SessionRecord) -> set[str]:
    """The people who opened or resumed a session. A session that can't be read can't go on."""
    ledger = CallLedger(requesters={same_name(str(record.metadata.get("requester") or ""))})
    with suppress(SopilotError):
        events = await store.events(record.id)
        for event in whole_events(events, await store.payloads(record.id)):
            ledger.fold(event)
    return ledger.requesters - {""}


async def fence_reason(store: Store, session_id: str, created_at: float, *, clock: Clock) -> str:
    """Why the irreversible calls of a session are held; empty if they are not. Compares the store
    with its external head first."""
    try:
        await _fence_if_behind(store, clock)
    except SopilotError as problem:
        return f"the external head of this store can't be compared: {problem}"
    return await known_fence(store, session_id, created_at)


async def known_fence(store: Store, session_id: str, created_at: float) -> str:
    """Why a session is held by the fence that the store has now; empty if it isn't."""
    fence = await load_fence(store)
    if not fence.holds(session_id, created_at):
        return ""
    return (
        f"this store is fenced ({fence.why}), and calls of this session may be missing in it; a "
        f"person must check that and run `sopilot store release {session_id}`"
    )


async def _fence_if_behind(store: Store, clock: Clock) -> None:
    if store.external_head is None:
        return
    seals = await store.external_head()
    head = seals.heads[-1].head
    if await _has(store, seals) or head.root in (await load_fence(store)).heads:
        return
    why = f"its log lacks entries that its external head covers ({head.size})"
    await fence_store(store, why, clock=clock, head=head.root)


async def _has(store: Store, seals: SealFile) -> bool:
    """Whether the store's log has what the external head covers. A log only grows, so its last
    entry tells; without the entries beside the head the whole log is hashed."""
    head = seals.heads[-1].head
    if head.size == 0:
        return True
    if seals.lines:
        last = await store.records.log(after=head.size - 2)
        return lines_of(last[:1]) == [seals.lines[head.size - 1]]
    log = await store.records.log()
    return len(log) >= head.size and head_of(log[: head.size], 0).root == head.root
