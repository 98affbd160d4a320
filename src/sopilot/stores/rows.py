"""What both databases have in common: filters of the register, and rows read back.

Rows of sessions as both databases keep them, read as records; a damaged one by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sopilot.messages.errors import StoreCorrupt, TraceError
from sopilot.records.log import SealedHead, digest_of, sealed_from_json
from sopilot.records.selection import Wanted
from sopilot.records.store import SessionRecord
from sopilot.session.orphans import DAMAGED, is_unsettled
from sopilot.trace.chain import Head
from sopilot.values.json import spell

_EXPIRED = "outcome = 'held' AND expires_at IS NOT NULL AND expires_at < {0}"


def filters(wanted: Wanted, mark: str) -> tuple[str, list[object]]:
    """A WHERE clause, or nothing, and its values; ``mark`` is how the database writes one."""
    clauses: list[str] = []
    values: list[object] = []

    def add(clause: str, *given: object) -> None:
        clauses.append(clause.format(mark))
        values.extend(given)

    if wanted.begin is not None:
        add("at >= {0}", wanted.begin)
    if wanted.end is not None:
        add("at < {0}", wanted.end)
    if wanted.action is not None:
        add("action = {0}", spell(wanted.action))
    if wanted.outcome == "expired":
        add(f"(outcome = 'expired' OR ({_EXPIRED}))", wanted.now)
    elif wanted.outcome == "held":
        add(f"(outcome = 'held' AND NOT ({_EXPIRED}))", wanted.now)
    elif wanted.outcome is not None:
        add("outcome = {0}", wanted.outcome)
    if wanted.grade is not None:
        add("grade = {0}", wanted.grade)
    return (f" WHERE {' AND '.join(clauses)}" if clauses else ""), values


def digests_of(rows: Iterable[tuple[Any, ...]]) -> dict[Any, str]:
    """Session → digest, from rows that begin with the session, in whatever order."""
    grouped: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        grouped.setdefault(row[0], []).append(row[1:])
    return {session: digest_of(its) for session, its in grouped.items()}


def read_seal(line: str) -> SealedHead:
    try:
        return sealed_from_json(json.loads(line))
    except (ValueError, TypeError, TraceError):
        raise StoreCorrupt("a sealed head of the store is damaged") from None


def record_of(row: Sequence[Any]) -> SessionRecord:
    session_id, created, updated, metadata, summary, seq, digest, owner, expires = row
    try:
        found, stands = value_of(metadata), value_of(summary)
    except StoreCorrupt:
        found = stands = None
    if not isinstance(found, dict) or not isinstance(stands, dict):
        raise StoreCorrupt(f"the row of session {session_id} is damaged")
    head = Head(session_id, seq, digest)
    return SessionRecord(session_id, created, updated, found, stands, head, owner, expires)


def unsettled_of(rows: Iterable[Sequence[Any]], *, now: float) -> list[SessionRecord]:
    """What a damaged row would say is known to nobody; the others are found all the same."""
    records = []
    for row in rows:
        try:
            records.append(record_of(row))
        except StoreCorrupt:
            session_id, created, updated, _, _, seq, digest, owner, expires = row
            head, stands = Head(session_id, seq, digest), {"status": DAMAGED}
            records.append(
                SessionRecord(session_id, created, updated, {}, stands, head, owner, expires)
            )
    return [one for one in records if is_unsettled(one, now=now)]


def value_of(spelled: str | bytes) -> Any:
    try:
        return json.loads(spelled if isinstance(spelled, str) else bytes(spelled))
    except (ValueError, TypeError, RecursionError):
        raise StoreCorrupt("a row of the store is damaged") from None
