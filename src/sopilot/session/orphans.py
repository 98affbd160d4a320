"""Calls left without an outcome, and what waits in a session.

A process killed in the middle of an irreversible call leaves an open call and a lease that runs
out. A sweep records that its outcome is unknown, so that people can resolve it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sopilot.machine.call_ledger import HeldCall
from sopilot.machine.secrets import Secrets
from sopilot.machine.state import CallRecord
from sopilot.messages.errors import LeaseHeld, RunEnded, StoreCorrupt, StoreUnavailable
from sopilot.protocols import Clock, SystemClock
from sopilot.records.loading import Loaded, load
from sopilot.records.store import SessionRecord, Store
from sopilot.session.calls import call_key, note_unknown_outcomes
from sopilot.session.elsewhere import GRACE_SECONDS
from sopilot.session.fence import Fence
from sopilot.session.opening import attach_session
from sopilot.values.json import JSON
from sopilot.values.text import moment, table


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without an outcome. ``arguments`` are as people may see them; the tool was given the
    ``key``."""

    session_id: str
    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    key: str

    def as_json(self) -> dict[str, JSON]:
        return {"session": self.session_id, "call_id": self.call_id, "action": self.action}


@dataclass(frozen=True, slots=True)
class Waiting:
    """The calls of a session that wait for people. ``running``: its owner is there, so a call
    without a result may get one. ``left`` are decisions that the owner hasn't taken yet."""

    held: tuple[HeldCall, ...]
    unknown: tuple[OpenCall, ...]
    running: bool
    left: tuple[JSON, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "held": [item.as_json() for item in self.held],
            "unknown": [item.call_id for item in self.unknown],
            "running": self.running,
            "left": list(self.left),
        }


async def waiting_in(store: Store, session_id: str, *, clock: Clock | None = None) -> Waiting:
    """Read-only; takes no lease."""
    now = (clock or SystemClock()).now()
    loaded = await load(store, session_id)
    running = loaded.record.is_running(now)
    secrets = Secrets(loaded.programs, loaded.whole)
    held = tuple(
        secrets.shown_call(item) for item in loaded.ledger.held.values() if item.is_open(now)
    )
    unknown = [
        open_call
        for open_call in _open_calls(loaded, secrets)
        if open_call.call_id in loaded.ledger.unknown or not running
    ]
    left = tuple(
        secrets.shown_decision(decision, loaded.ledger.held)
        for _, decision in await store.pending_decisions(session_id)
    )
    return Waiting(held, tuple(unknown), running, left)


async def sweep(store: Store, *, clock: Clock | None = None) -> list[OpenCall]:
    """Record which calls dead owners left open, and return them. Raise the store's refusal only if
    there is nothing to return."""
    clock = clock or SystemClock()
    open_calls: list[OpenCall] = []
    refused: StoreUnavailable | None = None
    for record in await store.unresolved(now=clock.now() - GRACE_SECONDS):
        if record.summary.get("open") == []:
            continue  # noted before
        try:
            open_calls += await resolve_orphan(store, record.id, clock=clock)
        except StoreUnavailable as problem:
            if not isinstance(problem, StoreCorrupt):
                refused = problem
        except Exception:  # a session damaged in whatever way must not keep others from being found
            continue
    if refused is not None and not open_calls:
        raise refused
    return open_calls


async def keep_sweeping(
    store: Store,
    every: float | None,
    tell: Callable[[list[OpenCall]], None],
    warn: Callable[[str], None],
) -> bool:
    """Sweep once, or ``every`` so many seconds until stopped; return whether anything was found.
    Retry if the store fails."""
    seen = False
    while True:
        try:
            result = await sweep(store)
            tell(result)
            seen = seen or bool(result)
        except RunEnded as problem:
            if every is None:
                raise
            warn(f"sopilot: {problem}")
        if every is None:
            return seen
        await asyncio.sleep(every)


async def resolve_orphan(
    store: Store, session_id: str, *, clock: Clock | None = None, take_over: bool = False
) -> list[OpenCall]:
    """Record the open calls of one session, unless another process has it."""
    with suppress(LeaseHeld):
        async with await attach_session(
            store, session_id, clock=clock, take_over=take_over
        ) as session:
            before = set(session.unknown_outcomes)
            async with session.writing():
                await note_unknown_outcomes(session)
            pending = session.configuration.pending
            return [
                _open_call(session_id, call_id, pending[call_id], session.secrets)
                for call_id in session.unknown_outcomes
                if call_id not in before
            ]
    return []


def _open_calls(loaded: Loaded, secrets: Secrets) -> list[OpenCall]:
    return [
        _open_call(loaded.record.id, call_id, pending, secrets)
        for call_id, pending in loaded.configuration.pending.items()
        if pending.action in loaded.programs.guarded or call_id in loaded.ledger.unknown
    ]


def _open_call(session_id: str, call_id: str, call: CallRecord, secrets: Secrets) -> OpenCall:
    shown = secrets.shown(call.action, call.arguments)
    key = call_key(session_id, call_id, call.action, call.arguments)
    return OpenCall(session_id, call_id, call.action, shown, key)


_COLUMNS = ("ID", "STATUS", "GOAL", "HANDBOOK", "MODEL", "EVENTS", "UPDATED")


def session_lines(
    records: Sequence[SessionRecord], count: int, fence: Fence | None = None
) -> Iterator[str]:
    """``count`` is the number of all sessions."""
    if not records:
        yield "no sessions"
        return
    yield table([_row(record, fence or Fence()) for record in records], _COLUMNS)
    if len(records) < count:
        yield f"\n{len(records)} of {count} sessions, the newest: --limit for more"


def _row(record: SessionRecord, fence: Fence) -> tuple[str, ...]:
    return (
        record.id,
        str(record.summary.get("status", "new")) + ", fenced" * fence.holds_open(record),
        str(record.summary.get("goal", "")) or "-",
        str(record.metadata.get("handbook", "")) or "-",
        str(record.metadata.get("model", "")) or "-",
        str(record.head.seq + 1),
        moment(record.updated_at),
    )


def waiting_lines(waiting: Waiting) -> Iterator[str]:
    for held in waiting.held:
        yield from held_lines(held)
    yield from unknown_lines(waiting.unknown)
    for left in waiting.left:
        yield f"left for the running session, not on record yet: {json.dumps(left)}"
    if not waiting.held and not waiting.unknown:
        yield "no calls are waiting"


def unknown_lines(unknown: Sequence[OpenCall]) -> Iterator[str]:
    for call in unknown:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
        yield f"{call.call_id}  outcome unknown  {call.action} {arguments}  key {call.key}"
        yield "  ask the tool whether it happened, then run `sopilot approvals resolve`"


def held_lines(held: HeldCall) -> Iterator[str]:
    arguments = json.dumps(dict(held.arguments), ensure_ascii=False)
    yield (
        f"{held.call_id}  {held.state}  {held.action} {arguments}  "
        f"{held.approvals} of {held.needed} from {', '.join(held.roles)}"
    )
    for ruling in held.rulings:
        yield f"  {ruling.decision} by {ruling.by} as {ruling.role} ({ruling.identity})"
    if held.why:
        yield f"  not proven: {held.why}"
