"""Pruning: delete the events of ended sessions, on record; heads, log and register stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from sopilot.messages.errors import mistake
from sopilot.protocols import Clock
from sopilot.records.log import is_journal
from sopilot.records.people import Principal
from sopilot.records.privacy import (
    PRUNED,
    change_policy,
    on_hold,
    require_entitled,
    stopped_sessions,
)
from sopilot.records.store import SessionRecord, Store
from sopilot.values.json import JSON
from sopilot.values.text import counted

ENDED = ("completed", "refused", "abandoned", "ended")
_AT_A_TIME = 500
Archive = Callable[[Collection[str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Pruning:
    """The fields are those of its JSON. ``held``: session → why it stays."""

    pruned: tuple[str, ...]
    events: int
    held: Mapping[str, str]
    running: tuple[str, ...]
    dry_run: bool

    def as_json(self) -> dict[str, JSON]:
        return asdict(self)

    def lines(self) -> list[str]:
        what = f"{counted(self.events, 'event')} of {counted(len(self.pruned), 'session')}"
        return [
            f"{what} {'would be' if self.dry_run else 'were'} deleted",
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
    """Prune sessions in one of ``states`` without an event for ``days``. Sessions with a waiting
    call, an unknown outcome or a legal hold stay. ``archive`` copies them before."""
    if unknown := sorted(set(states) - set(ENDED)):
        raise mistake(
            "not-ended", f"`{unknown[0]}` isn't a state of an ended session", help=", ".join(ENDED)
        )
    if not dry:
        await require_entitled(store, who)  # before anything is copied
        await store.require_deletion()
    now = clock.now()
    old = [
        session
        for session in await store.sessions(limit=None)
        if _is_old(session, states, now, days)
    ]
    held = await on_hold(store, old)
    wanted = [record.id for record in old if record.id not in held]
    async with stopped_sessions(store, wanted, clock=clock) as (free, running):
        # A session may have gone on after it was listed.
        stopped = [record for record in free if _is_old(record, states, now, days)]
        if stopped and not dry:
            if archive is not None:
                await archive([record.id for record in stopped])
            await _delete(store, stopped, why, who=who, clock=clock)
    events = sum(record.head.seq + 1 for record in stopped)
    return Pruning(tuple(record.id for record in stopped), events, held, tuple(running), dry)


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
