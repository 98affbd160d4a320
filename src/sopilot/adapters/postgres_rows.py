"""Rows of PostgreSQL as values, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sopilot.runtime.session import SessionRecord, StoreCorrupt
from sopilot.runtime.trace import Head
from sopilot.runtime.vm import JSON, canonical

RECORD = (
    "SELECT id, created_at, updated_at, metadata, summary, head_seq, head_hash, owner,"
    " lease_expires_at FROM {sessions}"
)


def record_of(row: Sequence[Any]) -> SessionRecord:
    session_id, created, updated, metadata, summary, seq, digest, owner, expires = row
    return SessionRecord(
        session_id,
        created,
        updated,
        value_of(metadata),
        value_of(summary),
        Head(session_id, seq, digest),
        owner,
        expires,
    )


def text_of(value: JSON) -> bytes:
    return canonical(value)


def value_of(spelled: bytes) -> Any:
    try:
        return json.loads(bytes(spelled))
    except (ValueError, TypeError, RecursionError):
        raise StoreCorrupt("a row of the store is damaged") from None
