"""Seal the log of a store, and compare a store with a sealed head."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sopilot.messages.errors import Pruned, RunEnded, SopilotError, raise_if_refused
from sopilot.records.completeness import (
    Gap,
    StoreView,
    Verified,
    check_seals,
    compare,
    gap_at,
    register_differs,
    rewritten,
)
from sopilot.records.loading import Loaded, Traces, summarise
from sopilot.records.log import (
    NO_ACTIONS,
    PREFIX,
    LogEntry,
    SealedHead,
    SealFile,
    digest_of,
    head_of,
    is_journal,
    seal_head,
)
from sopilot.records.privacy import JOURNAL, Policy, load_policy
from sopilot.records.store import Store, is_locked
from sopilot.trace.chain import Head
from sopilot.trace.redaction import references_in
from sopilot.trace.signing import SigningKey
from sopilot.values.json import JSON
from sopilot.values.text import counted, moment

_TRIES = 20

_LATEST_SECONDS = 60.0
"""How much later than it happened an event may be written."""


@dataclass(frozen=True, slots=True)
class Sealing:
    seal: SealedHead
    entries: tuple[LogEntry, ...]
    """The whole log that the head covers."""
    added: int
    pruned: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()
    """Sessions whose events or contents were deleted since the last seal, by the store's own
    journal alone."""

    def as_json(self) -> dict[str, JSON]:
        deleted: dict[str, JSON] = {"pruned": list(self.pruned), "erased": list(self.erased)}
        return {**self.seal.as_json(), "added": self.added, **deleted}


async def view(store: Store) -> StoreView:
    """Read register, heads and log in this order: a session that goes on meanwhile has then moved,
    and one that begins is in the log."""
    records = store.records
    digests = await records.digests()
    every = await records.heads()
    heads = {head.session_id: head for head in every}
    log = await records.log()
    twice = Counter(head.session_id for head in every) if len(heads) < len(every) else {}
    return StoreView(
        log,
        heads,
        digests,
        [session_id for session_id, count in twice.items() if count > 1],
    )


async def seal_store(
    store: Store,
    key: SigningKey,
    *,
    at: float,
    known: Collection[SealedHead] = (),
    earlier_keys: Collection[str] = (),
) -> Sealing:
    """Log every session that has moved, then sign the head. Raise ``RunEnded`` where the store is
    not what it was at the last seal, its own or one that is ``known`` elsewhere: that would be
    sealed over. A seal in the store counts if this key or one of ``earlier_keys`` signed it."""
    now = await view(store)
    earlier = max([*(await store.records.seals())[-1:], *known], key=_size, default=None)
    before = Policy()
    if earlier is not None:
        seals = SealFile((earlier,))
        compared = compare(seals, now)
        gaps = check_seals(seals, {key.public, *earlier_keys})
        if not gaps:
            gaps = compared.gaps
            await _read(store, compared, compared.moved)
        if gaps:
            more = f", and {len(gaps) - 1} more" if len(gaps) > 1 else ""
            raise RunEnded(
                "the store differs from the last seal, so nothing was sealed: "
                f"{gaps[0].message}{more}"
            )
        journal = compared.covered.get(PREFIX + JOURNAL)
        before = await _policy(store, up_to=journal.seq if journal else -1)
    after = await _policy(store)
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
    return Sealing(
        seal,
        entries,
        len(added),
        tuple(sorted(after.pruned.keys() - before.pruned.keys())),
        tuple(sorted(after.erased - before.erased)),
    )


def _size(seal: SealedHead) -> int:
    return seal.head.size


async def verify_store(
    store: Store,
    seals: SealFile,
    keys: Collection[str],
    *,
    events: bool = True,
) -> Verified:
    """Compare the store with the last of the heads. ``events`` reads every session that the head
    covers, else only those that have gone on since."""
    seal = seals.heads[-1]
    # Of a large log both take long, and one of them waits for a database.
    checking = asyncio.create_task(asyncio.to_thread(check_seals, seals, keys))
    try:
        now = await view(store)
    finally:
        gaps = await checking
    if gaps:
        return Verified(seal, gaps)
    verified = compare(seals, now)
    named = {gap.session_id for gap in verified.gaps}
    reading = [
        session_id
        for session_id in (verified.covered if events else verified.moved)
        if session_id not in named
    ]
    vouched = _Vouched(store, now.log, seal, keys, set(reading))
    await _read(store, verified, reading, vouched)
    verified.events_read = len(reading) - verified.pruned
    return verified


async def _policy(store: Store, *, up_to: int | None = None) -> Policy:
    """The policy with everything erased and pruned on record. A damaged journal counts as empty: it
    is a gap itself."""
    try:
        return await load_policy(store, up_to=up_to)
    except SopilotError as problem:
        raise_if_refused(problem)
        return Policy()


class _Vouched:
    """Erasures and prunings that the head covers, or a later head in the store that a trusted key
    signed: anybody who can write to the store can record others."""

    def __init__(
        self,
        store: Store,
        log: Sequence[LogEntry],
        seal: SealedHead,
        keys: Collection[str],
        session_ids: Collection[str],
    ) -> None:
        self._store, self._log, self._seal, self._keys = store, log, seal, keys
        self._policy: Policy | None = None
        self._last: dict[str, LogEntry] = {}
        self.history: dict[str, list[LogEntry]] = {}
        for entry in log[: seal.head.size] if session_ids else ():
            if entry.session_id in session_ids:
                self.history.setdefault(entry.session_id, []).append(entry)

    async def policy(self) -> Policy:
        """Read on first use."""
        if self._policy is None:
            self._last = {item.session_id: item for item in self._log[: await self._size()]}
            journal = self._last.get(PREFIX + JOURNAL)
            self._policy = await _policy(self._store, up_to=journal.seq if journal else -1)
        return self._policy

    async def has_pruned(self, head: Head, rows: str) -> bool:
        """Whether the session was pruned at that head, with these rows in the register."""
        pruned, entry = (await self.policy()).pruned, self._last.get(head.session_id)
        return (
            entry is not None
            and (entry.seq, entry.hash, entry.actions) == (head.seq, head.hash, rows)
            and pruned.get(head.session_id) == (head.seq, head.hash)
        )

    async def _size(self) -> int:
        least = self._seal.head.size
        for seal in sorted(await self._store.records.seals(), key=_size, reverse=True):
            if seal.head.size <= least:
                break
            first = self._log[: seal.head.size]
            if (
                seal.key in self._keys
                and seal.is_genuine
                and head_of(first, seal.head.at) == seal.head
            ):
                return seal.head.size
        return least


async def _read(
    store: Store,
    verified: Verified,
    session_ids: Collection[str],
    vouched: _Vouched | None = None,
) -> None:
    """Compare the events of these sessions with their entries and their rows in the register; add
    what was found to ``verified``. Without ``vouched``, what was erased or pruned on record is
    about to be sealed."""
    if session_ids:
        digests = await store.records.digests()
        reader = _Reader(store, verified, vouched, Traces(store), await _policy(store), digests)
        for session_id in session_ids:
            gap = await reader.gap(session_id)
            if gap is not None:
                verified.gaps.append(gap)


@dataclass(frozen=True, slots=True)
class _Reader:
    store: Store
    verified: Verified
    vouched: _Vouched | None
    traces: Traces
    policy: Policy
    digests: Mapping[str, str]

    async def gap(self, session_id: str) -> Gap | None:
        entry = self.verified.covered[session_id]
        try:
            loaded = await self.traces.loaded(session_id)
            if session_id == PREFIX + JOURNAL:
                await load_policy(self.store)  # a hold whose words are gone is one that is gone
        except Pruned:
            return await self._pruned(entry)
        except SopilotError as problem:
            raise_if_refused(problem)
            message = f"session {session_id} cannot be read: {problem}"
            return gap_at(entry, "unreadable-session", message)
        erased, vouched = loaded.record.is_erased, self.vouched
        on_record = session_id in self.policy.erased
        gone = f"contents of session {session_id} are gone, and no erasure is on record"
        if erased and not on_record:
            return gap_at(entry, "erased-session", f"the {gone}")
        if loaded.record.is_locked:
            self.verified.locked += 1
            if not on_record and not await _is_under_key(self.store, loaded):
                return gap_at(entry, "erased-session", gone)
        elif vouched and erased and session_id not in (await vouched.policy()).erased:
            self.verified.erased_since.append(session_id)
        known = vouched.history.get(session_id, []) if vouched else []
        if any(
            item.seq > entry.seq or (item.seq >= 0 and loaded.events[item.seq].hash != item.hash)
            for item in (*known, entry)
        ):
            return rewritten(entry)
        rows = self.digests.get(session_id, NO_ACTIONS)
        if digest_of(loaded.rows) != rows and await self._differ(session_id):
            return register_differs(session_id)
        if wrong := _beside(loaded, known):
            message = f"the store and the trace of session {session_id} differ in their {wrong}"
            return gap_at(entry, "unreadable-session", message)
        return None

    async def _pruned(self, entry: LogEntry) -> Gap | None:
        session_id = entry.session_id
        self.verified.pruned += 1
        head = (await self.store.record(session_id)).head
        if self.policy.pruned.get(session_id) != (head.seq, head.hash):
            message = f"the events of session {session_id} are gone, and no pruning is on record"
            return gap_at(entry, "erased-session", message)
        rows = self.digests.get(session_id, NO_ACTIONS)
        if self.vouched and not await self.vouched.has_pruned(head, rows):
            return gap_at(
                entry,
                "pruned-since",
                f"the events of session {session_id} were deleted after the seal; the store says "
                "that they were pruned, but no seal covers that yet: if it is right, seal again",
            )
        return None

    async def _differ(self, session_id: str) -> bool:
        """Whether trace and register differ at one head of the session: rows that were read before
        the trace may be those of an earlier step."""
        differ = True
        for _ in range(_TRIES):
            loaded = await self.traces.loaded(session_id)
            result = (await self.store.records.digests()).get(session_id, NO_ACTIONS)
            differ = digest_of(loaded.rows) != result
            if not differ or (await self.store.record(session_id)).head == loaded.record.head:
                break
        return differ


def _beside(loaded: Loaded, known: Sequence[LogEntry]) -> str:
    """Name the field of the session's row that contradicts its trace; empty if none does."""
    record, events = loaded.record, loaded.events
    if known and known[0].seq < 0 and known[0].at != record.created_at:
        return "beginning"
    if events and record.updated_at < events[-1].event.at - _LATEST_SECONDS:
        return "time"
    if is_journal(record.id) or record.is_locked or record.is_erased:
        return ""
    made = summarise(loaded.configuration, loaded.ledger, loaded.register, loaded.programs.guarded)
    stored = record.summary
    same = "status" in stored and all(made.get(name, item) == item for name, item in stored.items())
    return "" if same or not events else "status"


async def _is_under_key(store: Store, loaded: Loaded) -> bool:
    """Whether every value that the trace refers to is there, encrypted."""
    payloads = await store.payloads(loaded.record.id)
    named = {item for sealed in loaded.events for item in references_in(sealed.event.payload)}
    return named <= {ref for ref, value in payloads.items() if is_locked(value)}


def verified_json(verified: Verified, without_events: bool) -> dict[str, object]:
    head = verified.seal.head
    return {
        "complete": verified.complete,
        "sealed": {"size": head.size, "root": head.root, "at": head.at, "key": verified.seal.key},
        "sessions": verified.sessions,
        "journals": verified.journals,
        "events_read": verified.events_read,
        "pruned": verified.pruned,
        "erased_since": verified.erased_since,
        "under_keys": verified.locked,
        "gone_on": len(verified.moved),
        "not_covered": {"entries": verified.later, "sessions": len(verified.unsealed)},
        "without_events": without_events,
        "gaps": [gap.as_json() for gap in verified.gaps],
    }


def verified_lines(verified: Verified, without_events: bool) -> Iterator[str]:
    head = verified.seal.head
    when = moment(head.at)
    for gap in verified.gaps:
        yield f"{gap.code}: {gap.message}"
    if verified.gaps:
        yield f"{counted(len(verified.gaps), 'gap')} against the head of {when}"
        return
    own = counted(verified.sessions, "session")
    whole = f"{own} and {counted(verified.journals, 'journal')}" if verified.journals else own
    yield (
        f"complete: all {whole} sealed at {when} are here; "
        "none was exchanged, cut or rewritten, and none is in the store without an entry"
    )
    if without_events:
        unread = len(verified.covered) - verified.events_read
        yield (
            f"not read: the events of {counted(unread, 'session')}, whose heads and action "
            "records match the seal"
        )
    else:
        yield "unaltered: every event up to the sealed one; the action records match the traces"
    if verified.pruned:
        yield (
            f"pruned: the events of {counted(verified.pruned, 'session')} were deleted, as "
            "recorded; their heads remain, so an archive of them can still be verified"
        )
    for item in verified.erased_since:
        yield f"erased: the contents of session {item}, as recorded; no seal covers that yet"
    if verified.locked:
        yield (
            f"not read: the contents of {counted(verified.locked, 'session')}, which are encrypted "
            "(SOPILOT_KEYS)"
        )
    if verified.moved or verified.unsealed:
        yield (
            f"not covered: events after the seal (sessions and journals: {len(verified.moved)} "
            f"continued, {len(verified.unsealed)} began)"
        )
    yield "not proven by this: that what was recorded is true, or that everything was recorded"


def sealed_lines(sealing: Sealing) -> Iterator[str]:
    head = sealing.seal.head
    yield f"sealed: entries up to {head.size}, {sealing.added} of them new, root {head.root}"
    for what, sessions in (("events", sealing.pruned), ("contents", sealing.erased)):
        if sessions:
            yield (
                f"also sealed: {what} of {counted(len(sessions), 'session')} were deleted since "
                f"the last seal, according to the store's journal: {', '.join(sessions)}"
            )
