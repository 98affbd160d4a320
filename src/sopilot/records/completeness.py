"""Compare a store with a sealed head, and name everything that is missing or altered. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sopilot.records.log import (
    NO_ACTIONS,
    LogEntry,
    SealedHead,
    SealFile,
    head_of,
    is_journal,
    leaves_of,
    lines_of,
)
from sopilot.records.merkle_tree import roots_at
from sopilot.trace.chain import Head


class Gap(NamedTuple):
    code: str
    message: str
    session_id: str = ""
    entry: int | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "code": self.code,
            "message": self.message,
            "session": self.session_id or None,
            "entry": self.entry,
        }


def gap_at(entry: LogEntry, code: str, message: str) -> Gap:
    return Gap(code, message, entry.session_id, entry.number)


class StoreView(NamedTuple):
    """The store as it is now. ``digests`` are those of each session's rows in the register."""

    log: Sequence[LogEntry]
    heads: Mapping[str, Head]
    digests: Mapping[str, str]
    twice: Sequence[str] = ()
    """Sessions with more than one row."""


@dataclass(slots=True)
class Verified:
    """The result of comparing a store with a sealed head."""

    seal: SealedHead
    gaps: list[Gap] = field(default_factory=list)
    """What the head covers and is missing or altered, as far as was read."""
    covered: dict[str, LogEntry] = field(default_factory=dict)
    """Session → its last entry below the head."""
    moved: list[str] = field(default_factory=list)
    """Sessions that have gone on since their entry: their events must be read."""
    later: int = 0
    """Entries behind the head, which it does not cover."""
    unsealed: list[str] = field(default_factory=list)
    """Sessions that only entries behind the head know."""
    events_read: int = 0
    """Sessions whose events were read, and not their heads alone."""
    pruned: int = 0
    """Sessions whose events were deleted on record."""
    erased_since: list[str] = field(default_factory=list)
    """Sessions whose contents were erased on a record that the head does not cover."""
    locked: int = 0
    """Sessions whose contents are under keys that are not at hand."""

    @property
    def complete(self) -> bool:
        return not self.gaps

    @property
    def journals(self) -> int:
        return sum(map(is_journal, self.covered))

    @property
    def sessions(self) -> int:
        return len(self.covered) - self.journals


def check_seals(seals: SealFile, keys: Collection[str]) -> list[Gap]:
    """Name heads without a signature of one of ``keys``, and heads that don't cover the entries
    beside them."""
    gaps = []
    roots = roots_at(leaves_of(seals.lines), {sealed.head.size for sealed in seals.heads})
    for sealed in seals.heads:
        size = sealed.head.size
        head = f"the head of {size} entries"
        if sealed.key not in keys:
            gaps.append(Gap("foreign-key", f"{head} is signed with another key"))
        elif not sealed.is_genuine:
            gaps.append(Gap("bad-seal", f"the signature of {head} is wrong"))
        elif seals.lines and roots.get(size, b"").hex() != sealed.head.root:
            gaps.append(Gap("bad-seal", f"the entries beside {head} are not those it covers"))
    return gaps


def compare(seals: SealFile, store: StoreView) -> Verified:
    """Compare the store with the last head of ``seals``, which must have been checked. Without the
    entries beside the head, a rewritten log is detected, but its former entries aren't named."""
    sealed = seals.heads[-1]
    size = sealed.head.size
    result = Verified(sealed, later=max(0, len(store.log) - size))
    gaps = result.gaps
    known: Sequence[LogEntry] = ()
    as_sealed = False
    if seals.lines:
        as_sealed = lines_of(store.log[:size]) == list(seals.lines[:size])
        known = store.log[:size] if as_sealed else seals.entries()[:size]
    gaps += missing_entries(store.log)
    if len(store.log) < size:
        message = (
            f"the log has {len(store.log)} entries and the head covers {size}: "
            "its end was cut off, or an old copy was restored"
        )
        gaps.append(Gap("short-log", message, entry=len(store.log)))
    elif not (as_sealed if seals.lines else head_of(store.log[:size], 0).root == sealed.head.root):
        message = f"the first {size} entries of the log aren't those that were sealed"
        gaps.append(Gap("rewritten-log", message))
    if gaps and known:
        gaps += _entries(known, store.log)
    result.covered = {item.session_id: item for item in known or store.log[:size]}
    # The lines beside the head name every covered session: an inserted entry doesn't count.
    logged = {item.session_id for item in (store.log[size:] if known else store.log)}
    digests = store.digests
    for session_id, entry in result.covered.items():
        head = store.heads.get(session_id)
        stood = (session_id, entry.seq, entry.hash)
        if head == stood and digests.get(session_id, NO_ACTIONS) == entry.actions:
            continue  # most have not moved, and there may be very many
        gap = _session(entry, head, digests)
        if gap is not None:
            gaps.append(gap)
        elif store.heads[session_id].seq > entry.seq:
            result.moved.append(session_id)
    inserted = [(name, f"session {name} is in the store twice") for name in store.twice]
    inserted += [
        (name, f"there are action records of {_named(name)}, which isn't in the store")
        for name in digests
        if name not in store.heads
    ]
    inserted += [
        (name, f"session {name} is in the store, but has no entry in the log")
        for name in store.heads
        if name not in logged and name not in result.covered
    ]
    gaps += [Gap("inserted-session", message, name) for name, message in inserted]
    result.unsealed = [name for name in store.heads if name not in result.covered]
    return result


def _named(session_id: str) -> str:
    return f"session {session_id}" if session_id else "a session"


def missing_entries(log: Sequence[LogEntry]) -> Iterator[Gap]:
    expected = 0
    for entry in log:
        if entry.number > expected:
            last = entry.number - 1
            missing = f"{expected}" if last == expected else f"{expected} to {last}"
            yield Gap("missing-entry", f"entry {missing} of the log is missing", entry=expected)
        expected = entry.number + 1


def _entries(known: Sequence[LogEntry], log: Sequence[LogEntry]) -> Iterator[Gap]:
    there = {entry.number: entry for entry in log}
    for entry in known:
        result = there.get(entry.number)
        if result == entry:
            continue
        instead = (
            "nothing" if result is None else f"session {result.session_id} at event {result.seq}"
        )
        was = f"entry {entry.number} was session {entry.session_id} at event {entry.seq}"
        yield gap_at(entry, "rewritten-entry", f"{was}; now it is {instead}")


def _session(entry: LogEntry, head: Head | None, digests: Mapping[str, str]) -> Gap | None:
    session_id = entry.session_id
    if head is None:
        had = f"it had {entry.seq + 1} events (entry {entry.number})"
        return gap_at(entry, "deleted-session", f"session {session_id} is gone; {had}")
    if head.seq < entry.seq:
        message = f"session {session_id} has {head.seq + 1} events, but had {entry.seq + 1}"
        return gap_at(entry, "cut-session", message)
    if head.seq == entry.seq and head.hash != entry.hash:
        return rewritten(entry)
    if head.seq == entry.seq and digests.get(session_id, NO_ACTIONS) != entry.actions:
        return register_differs(session_id)
    return None


def rewritten(entry: LogEntry) -> Gap:
    return gap_at(
        entry,
        "rewritten-session",
        f"session {entry.session_id} isn't the one that was sealed: "
        f"an event up to number {entry.seq} differs",
    )


def register_differs(session_id: str) -> Gap:
    return Gap(
        "register-differs",
        f"the action records of session {session_id} differ from its trace",
        session_id,
    )
