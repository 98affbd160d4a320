"""Sealing the log of a store, and holding a store against a sealed head."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sopilot.language.diagnostics import RunEnded, SopilotError
from sopilot.runtime.records.completeness import (
    ERASED,
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
from sopilot.runtime.records.privacy import Policy
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.errors import Pruned
from sopilot.runtime.session.journal import is_journal
from sopilot.runtime.session.privacy import load_policy
from sopilot.runtime.session.registers import Traces, rebuild_register
from sopilot.runtime.trace import Head
from sopilot.runtime.trace.signing import SigningKey

_TRIES = 20


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
    """With the journals, which are kept as sessions are."""
    events_read: int = 0
    """Sessions whose events were read, and not their heads alone."""
    moved: int = 0
    later: int = 0
    pruned: int = 0
    """Sessions whose events were deleted on record."""
    unsealed: list[str] = field(default_factory=list)
    """Sessions that only entries behind the head know."""
    journals: int = 0

    @property
    def complete(self) -> bool:
        return not self.gaps


Elsewhere = Callable[[], Mapping[str, str] | None]


async def view(store: Store, elsewhere: Elsewhere | None = None) -> StoreView:
    """The register, the heads, the log, in this order: a session that goes on meanwhile has then
    moved, and one that begins is in the log. ``elsewhere``: who reads the register at the same
    time."""
    records = store.records
    digests = await records.digests() if elsewhere is None else {}
    heads = {head.session_id: head for head in await records.heads()}
    log = await records.log()
    return StoreView(log, heads, lambda: digests if elsewhere is None else elsewhere() or {})


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
        gaps = [*compared.gaps, *(await _read(store, compared, compared.moved))[0]]
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
    only those that have gone on since. ``elsewhere``: who reads the register at the same
    time, if it can; what is not as it was is looked for again, in order."""
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
    unread, pruned = await _read(store, compared, reading)
    found = Verified(
        [*compared.gaps, *unread],
        seal,
        len(compared.covered),
        len(reading) - pruned,
        len(compared.moved),
        compared.later,
        pruned=pruned,
    )
    found.journals = sum(map(is_journal, compared.covered))
    found.unsealed = [one for one in now.heads if one not in compared.covered]
    return found


async def _policy(store: Store) -> Policy:
    """What was erased and pruned on record; a journal that is damaged is a gap itself."""
    try:
        return await load_policy(store)
    except SopilotError:
        return Policy()


def _on_record(policy: Policy, head: Head, entry: LogEntry) -> bool:
    """Whether it was pruned at the head that it still has, behind or at that of the entry."""
    pruned = policy.pruned.get(head.session_id)
    if pruned != (head.seq, head.hash):
        return False
    return entry.seq < head.seq or (entry.seq, entry.hash) == pruned


async def _read(
    store: Store, compared: Compared, session_ids: Collection[str]
) -> tuple[list[Gap], int]:
    """The events of these sessions, against their entries and their rows in the register; how
    many of them were pruned."""
    traces, pruned = Traces(store), 0
    gaps: list[Gap] = []
    policy = await _policy(store)
    digests = await store.records.digests() if session_ids else {}
    for session_id in session_ids:
        entry = compared.covered[session_id]
        try:
            loaded = await traces.loaded(session_id)
        except Pruned:
            pruned += 1
            if not _on_record(policy, (await store.record(session_id)).head, entry):
                message = f"the events of session {session_id} are gone, and nobody pruned them"
                gaps.append(Gap(ERASED, message, session_id, entry.number))
            continue
        except SopilotError as problem:
            message = f"session {session_id} cannot be read: {problem}"
            gaps.append(Gap(UNREADABLE, message, session_id, entry.number))
            continue
        if loaded.record.is_erased and session_id not in policy.erased:
            message = f"the contents of session {session_id} are gone, and nobody erased them"
            gaps.append(Gap(ERASED, message, session_id, entry.number))
            continue
        stood = loaded.events[entry.seq].hash if entry.seq >= 0 else entry.hash
        if stood != entry.hash:
            gaps.append(rewritten(entry))
        elif digest_of(traces.rows_of(loaded)) != digests.get(
            session_id, NO_ACTIONS
        ) and await _differ(store, traces, session_id):
            gaps.append(register_differs(session_id))
    return gaps, pruned


async def _differ(store: Store, traces: Traces, session_id: str) -> bool:
    """Whether trace and register differ while nobody goes on with the session: rows that were
    read before the trace may be those of an earlier step."""
    differ = True
    for _ in range(_TRIES):
        loaded = await traces.loaded(session_id)
        found = (await store.records.digests()).get(session_id, NO_ACTIONS)
        differ = digest_of(traces.rows_of(loaded)) != found
        if not differ or (await store.record(session_id)).head == loaded.record.head:
            break
    return differ
