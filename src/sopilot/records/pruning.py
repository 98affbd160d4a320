"""Sessions that ended long ago: their events deleted, on record; head, log and register stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sopilot.messages.errors import LeaseHeld, mistake
from sopilot.protocols import Clock
from sopilot.records.log import is_journal
from sopilot.records.people import Principal
from sopilot.records.privacy import (
    EVERY,
    PRUNED,
    change_policy,
    load_policy,
    on_hold,
    require_entitled,
)
from sopilot.records.store import Lease, SessionRecord, Store
from sopilot.values.json import JSON
from sopilot.values.text import counted

ENDED = ("completed", "refused", "abandoned", "ended")
_AT_A_TIME = 500
_LEASE_SECONDS = 600.0
Archive = Callable[[Collection[str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Pruning:
    """``held``: session → why it stays; ``running``: somebody has it."""

    pruned: tuple[str, ...]
    held: Mapping[str, str]
    running: tuple[str, ...]
    events: int
    dry: bool = False

    def as_json(self) -> dict[str, JSON]:
        return {
            "pruned": list(self.pruned),
            "events": self.events,
            "held": dict(self.held),
            "running": list(self.running),
            "dry_run": self.dry,
        }

    def lines(self) -> list[str]:
        what = f"{counted(self.events, 'event')} of {counted(len(self.pruned), 'session')}"
        return [
            f"{what} {'would be' if self.dry else 'were'} deleted",
            *(f"{item} is on hold: {why}" for item, why in self.held.items()),
            *(f"{item} is running" for item in self.running),
        ]


async def prune(
    store: Store,
    *,
    days: float,
    states: Sequence[str] = ENDED,
    why: str = "",
    archive: Archive | None = None,
    dry: bool = False,
    who: Principal | None = None,
    clock: Clock,
) -> Pruning:
    """Sessions in one of ``states`` without an event for ``days``. What waits for people, whose
    outcome nobody knows, or is on legal hold stays. ``archive`` has them before they go."""
    if unknown := sorted(set(states) - set(ENDED)):
        raise mistake(
            "not-ended", f"`{unknown[0]}` is no state of an ended session", help=", ".join(ENDED)
        )
    if not dry:
        await require_entitled(store, who)  # before anything is copied
        await store.require_deletion()
    now = clock.now()
    old = [
        session
        for session in await store.sessions(limit=EVERY)
        if _is_old(session, states, now, days)
    ]
    held = await on_hold(store, await load_policy(store), old)
    going: dict[str, SessionRecord] = {}
    running: list[str] = []
    leases: list[Lease] = []
    try:
        for record in old:
            if record.id in held:
                continue
            try:  # from here on nobody goes on with it
                leases.append(
                    await store.acquire(
                        record.id, owner="pruning", now=now, lease_seconds=_LEASE_SECONDS
                    )
                )
            except LeaseHeld:
                running.append(record.id)
                continue
            going[record.id] = await store.record(record.id)
        if going and not dry:
            if archive is not None:
                await archive(tuple(going))
            await _delete(store, list(going.values()), why, who=who, clock=clock)
    finally:
        for lease in leases:
            await store.release(lease)
    events = sum(item.head.seq + 1 for item in going.values())
    return Pruning(tuple(going), held, tuple(running), events, dry)


async def _delete(
    store: Store, records: list[SessionRecord], why: str, *, who: Principal | None, clock: Clock
) -> None:
    now = clock.now()
    # The log has the last head of each: a later seal covers where it ended.
    await store.records.log_heads([record.id for record in records], at=now)
    for begin in range(0, len(records), _AT_A_TIME):
        part = records[begin : begin + _AT_A_TIME]
        heads: dict[str, JSON] = {item.id: [item.head.seq, item.head.hash] for item in part}
        metadata = {item.id: item.metadata_when_pruned(now) for item in part}
        await change_policy(
            store, PRUNED, {"sessions": heads, "why": why}, who=who, clock=clock,
            commit=partial(store.prune, metadata),
        )  # fmt: skip


def _is_old(record: SessionRecord, states: Sequence[str], now: float, days: float) -> bool:
    return (
        not is_journal(record.id)
        and not record.is_pruned
        and not record.is_unfinished
        and record.summary.get("status") in states
        and now - record.updated_at >= days * 86_400
    )
