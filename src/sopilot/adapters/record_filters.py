"""What both databases have in common: filters of the register, and rows read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sopilot.runtime.records import Wanted
from sopilot.runtime.records.log import SealedHead, digest_of, sealed_from_json
from sopilot.runtime.session import StoreCorrupt
from sopilot.runtime.vm import TraceError
from sopilot.runtime.vm.values import spell

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
