"""Rows of sessions as both databases keep them, read as records; a damaged one by its name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sopilot.runtime.session import SessionRecord, StoreCorrupt
from sopilot.runtime.session.unsettled import DAMAGED, is_unsettled
from sopilot.runtime.trace import Head


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
