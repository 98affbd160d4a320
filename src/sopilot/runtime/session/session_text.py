"""Sessions and what waits in them, as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sopilot.language.diagnostics.plain_text import moment, table
from sopilot.runtime.session._approvals import HeldCall
from sopilot.runtime.session._store import SessionRecord
from sopilot.runtime.session.unsettled import LeftOpen, Waiting

_COLUMNS = ("ID", "STATUS", "GOAL", "HANDBOOK", "MODEL", "EVENTS", "UPDATED")


def session_lines(records: Sequence[SessionRecord], count: int) -> Iterator[str]:
    """``count``: how many there are."""
    if not records:
        yield "no sessions"
        return
    yield table([_row(record) for record in records], _COLUMNS)
    if len(records) < count:
        yield f"\n{len(records)} of {count} sessions, the newest: --limit for more"


def _row(record: SessionRecord) -> tuple[str, ...]:
    return (
        record.id,
        str(record.summary.get("status", "new")),
        str(record.summary.get("goal", "")) or "-",
        str(record.metadata.get("handbook", "")) or "-",
        str(record.metadata.get("model", "")) or "-",
        str(record.head.seq + 1),
        moment(record.updated_at),
    )


def waiting_lines(found: Waiting) -> Iterator[str]:
    for held in found.held:
        yield from held_lines(held)
    yield from unknown_lines(found.unknown)
    for left in found.left:
        yield f"left for the running session, not on record yet: {json.dumps(left)}"
    if not found.held and not found.unknown:
        yield "nothing waits"


def unknown_lines(unknown: Sequence[LeftOpen]) -> Iterator[str]:
    for call in unknown:
        yield f"{call.call_id}  outcome unknown: settle it with `sopilot approve settle`"


def held_lines(held: HeldCall) -> Iterator[str]:
    arguments = json.dumps(dict(held.arguments), ensure_ascii=False)
    yield (
        f"{held.call_id}  {held.state}  {held.action} {arguments}  "
        f"{held.approvals} of {held.needed} from {', '.join(held.roles)}"
    )
    for one in held.rulings:
        yield f"  {one.decision} by {one.by} as {one.role} ({one.identity})"
    if held.why:
        yield f"  not proven: {held.why}"
