"""What came of holding a store against a sealed head, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.language.diagnostics.plain_text import counted, moment
from sopilot.runtime.session.sealing import Sealing, Verified


def verified_json(found: Verified, without_events: bool) -> dict[str, object]:
    head = found.seal.head
    return {
        "complete": found.complete,
        "sealed": {"size": head.size, "root": head.root, "at": head.at, "key": found.seal.key},
        "sessions": found.sessions - found.journals,
        "journals": found.journals,
        "events_read": found.events_read,
        "pruned": found.pruned,
        "erased_since": found.erased_since,
        "under_keys": found.locked,
        "gone_on": found.moved,
        "not_covered": {"entries": found.later, "sessions": len(found.unsealed)},
        "without_events": without_events,
        "gaps": [gap.as_json() for gap in found.gaps],
    }


def verified_lines(found: Verified, without_events: bool) -> Iterator[str]:
    head = found.seal.head
    when = moment(head.at)
    for gap in found.gaps:
        yield f"{gap.code}: {gap.message}"
    if found.gaps:
        yield f"{counted(len(found.gaps), 'gap')} against the head of {when}"
        return
    own = counted(found.sessions - found.journals, "session")
    whole = f"{own} and {counted(found.journals, 'journal')}" if found.journals else own
    yield (
        f"complete: all {whole} that were sealed at {when} are here, "
        "none was exchanged, cut or rewritten, and none stands in the store without an entry"
    )
    if without_events:
        unread = found.sessions - found.events_read
        yield (
            f"not read: the events of {counted(unread, 'session')}, whose heads and rows of the "
            "register are as sealed"
        )
    else:
        yield "unaltered: every event up to its sealed one; the register is what the traces make"
    if found.pruned:
        yield (
            f"pruned: the events of {counted(found.pruned, 'session')} were deleted, on record, "
            "at the heads that they have; whoever archived them can verify them there"
        )
    for one in found.erased_since:
        yield f"erased: the contents of session {one}, on a record that no seal covers yet"
    if found.locked:
        yield (
            f"not read: the contents of {counted(found.locked, 'session')}, which are under keys "
            "(SOPILOT_KEYS)"
        )
    if found.moved or found.unsealed:
        yield (
            f"not covered: what came after the seal (of sessions and journals {found.moved} went "
            f"on, {len(found.unsealed)} began since)"
        )
    yield "not proven by this: that what was recorded is true, or that everything was recorded"


def sealed_lines(sealing: Sealing) -> Iterator[str]:
    head = sealing.seal.head
    yield f"sealed: entries up to {head.size}, {sealing.added} of them new, root {head.root}"
    for what, sessions in (("events", sealing.pruned), ("contents", sealing.erased)):
        if sessions:
            yield (
                f"sealed with it: {what} of {counted(len(sessions), 'session')} were deleted since "
                f"the last seal, as the journal of the store says: {', '.join(sessions)}"
            )
