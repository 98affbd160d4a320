"""Sealing the log of a store, and holding a store against a sealed head."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from sopilot.language.diagnostics import RunEnded, SopilotError
from sopilot.runtime.records.completeness import (
    UNREADABLE,
    Compared,
    Gap,
    StoreView,
    check_seals,
    compare,
    register_differs,
    rewritten,
)
from sopilot.runtime.records.log import (
    NO_ACTIONS,
    LogEntry,
    SealedHead,
    SealFile,
    digest_of,
    head_of,
    seal_head,
)
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.registers import Traces, rebuild_register
from sopilot.runtime.trace import Head
from sopilot.runtime.trace.signing import SigningKey


@dataclass(frozen=True, slots=True)
class Sealing:
    seal: SealedHead
    entries: tuple[LogEntry, ...]
    """The whole log that the head covers."""
    added: int


@dataclass(slots=True)
class Verified:
    """``complete``: nothing that the head covers is missing or altered, as far as was read."""

    gaps: list[Gap]
    seal: SealedHead
    sessions: int = 0
    events_read: int = 0
    """Sessions whose events were read, and not their heads alone."""
    moved: int = 0
    later: int = 0
    unsealed: list[str] = field(default_factory=list)
    """Sessions that only entries behind the head know."""

    @property
    def complete(self) -> bool:
        return not self.gaps


class Standing(NamedTuple):
    """Where every session stands, column by column: a process hands it to another quickly.
    ``digests`` are of its rows in the register, empty where it has none."""

    sessions: list[str]
    seqs: list[int]
    hashes: list[str]
    digests: list[str]


Elsewhere = Callable[[], Standing | None]


async def standing(store: Store) -> Standing:
    """The register before the heads: a session that goes on between the two has then moved."""
    digests = await store.records.digests()
    heads = await store.records.heads()
    return Standing(
        [head.session_id for head in heads],
        [head.seq for head in heads],
        [head.hash for head in heads],
        [digests.get(head.session_id, "") for head in heads],
    )


async def view(store: Store, elsewhere: Elsewhere | None = None) -> StoreView:
    """The log last: a session that begins meanwhile is then in it. ``elsewhere``: who reads at
    the same time where sessions stand."""
    log = await store.records.log() if elsewhere is not None else None
    there = elsewhere() if elsewhere is not None else None
    now = there if there is not None else await standing(store)
    heads = {one: Head(one, seq, digest) for one, seq, digest, _ in zip(*now, strict=True)}
    digests = {one: digest for one, _, _, digest in zip(*now, strict=True) if digest}
    return StoreView(log if log is not None else await store.records.log(), heads, digests)


async def seal_store(store: Store, key: SigningKey, *, at: float) -> Sealing:
    """An entry for every session that has moved, then the head, signed. Refuses (``RunEnded``)
    where the store is not what it was at the last seal: that would be sealed over."""
    if await store.records.rebuild_is_due():
        _, problems = await rebuild_register(store)
        if problems:
            raise RunEnded(f"session {next(iter(problems))} cannot be read; nothing was sealed")
    now = await view(store)
    earlier = await store.records.seals()
    if earlier:
        compared = compare(SealFile((earlier[-1],)), now)
        gaps = [*compared.gaps, *await _read(store, compared, compared.moved)]
        if gaps:
            more = f", and {len(gaps) - 1} more" if len(gaps) > 1 else ""
            raise RunEnded(
                "the store is not what was sealed before, and nothing was sealed: "
                f"{gaps[0].message}{more}"
            )
    last = {entry.session_id: entry for entry in now.log}
    moved = [
        session_id
        for session_id, head in now.heads.items()
        if session_id not in last or last[session_id].hash != head.hash
    ]
    await store.records.log_heads(moved, at=at)
    added = await store.records.log(after=len(now.log) - 1)
    entries = (*now.log, *added)
    seal = seal_head(key, head_of(entries, at))
    await store.records.add_seal(seal)
    return Sealing(seal, entries, len(added))


async def verify_store(
    store: Store,
    seals: SealFile,
    keys: Collection[str],
    *,
    events: bool = True,
    elsewhere: Elsewhere | None = None,
) -> Verified:
    """Against the last of the heads. ``events`` reads every session that it covers; without,
    only those that have gone on since. ``elsewhere``: who reads at the same time where sessions
    stand; what that finds missing is looked for again here, in order."""
    seal = seals.heads[-1]
    gaps = check_seals(seals, keys)
    if gaps:
        return Verified(gaps, seal)
    now = await view(store, elsewhere)
    compared = compare(seals, now)
    if elsewhere is not None and compared.gaps:
        now = await view(store)  # perhaps somebody wrote between the two readings
        compared = compare(seals, now)
    named = {gap.session_id for gap in compared.gaps}
    reading = [
        session_id
        for session_id in (compared.covered if events else compared.moved)
        if session_id not in named
    ]
    found = Verified(
        [*compared.gaps, *await _read(store, compared, reading)],
        seal,
        len(compared.covered),
        len(reading),
        len(compared.moved),
        compared.later,
    )
    found.unsealed = [one for one in now.heads if one not in compared.covered]
    return found


async def _read(store: Store, compared: Compared, session_ids: Collection[str]) -> list[Gap]:
    """The events of these sessions, against their entries and their rows in the register."""
    traces, gaps = Traces(store), []
    digests = await store.records.digests() if session_ids else {}
    for session_id in session_ids:
        entry = compared.covered[session_id]
        try:
            loaded = await traces.loaded(session_id)
        except SopilotError as problem:
            message = f"session {session_id} cannot be read: {problem}"
            gaps.append(Gap(UNREADABLE, message, session_id, entry.number))
            continue
        stood = loaded.events[entry.seq].hash if entry.seq >= 0 else entry.hash
        if stood != entry.hash:
            gaps.append(rewritten(entry))
        elif digest_of(traces.rows_of(loaded)) != digests.get(session_id, NO_ACTIONS):
            gaps.append(register_differs(session_id))
    return gaps
