"""Sessions and appends in PostgreSQL, many at a time: one round trip, one flush."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from sopilot.adapters.gathering import Append
from sopilot.adapters.postgres_records import ON_CONFLICT
from sopilot.adapters.postgres_rows import array_of, text_of
from sopilot.runtime.records.log import NO_ACTIONS
from sopilot.runtime.session import Batch, Lease, NewSession
from sopilot.runtime.trace import Head, genesis


class Create(NamedTuple):
    session: NewSession
    owner: str
    now: float
    expires: float


class Acquire(NamedTuple):
    session_id: str
    owner: str
    now: float
    expires: float
    take_over: bool


_HEADS = {
    "id": "text", "token": "bigint", "expected": "text", "seq": "bigint", "hash": "text",
    "at": "float8", "summary": "bytea", "expires": "float8",
}  # fmt: skip
_WANTED = {
    "id": "text", "owner": "text", "now": "float8", "expires": "float8", "take_over": "bool",
}  # fmt: skip
_LEASES = {"id": "text", "token": "bigint"}
_SESSIONS = {
    "id": "text", "created_at": "float8", "updated_at": "float8", "metadata": "bytea",
    "summary": "bytea", "head_seq": "bigint", "head_hash": "text", "owner": "text",
    "token": "bigint", "lease_expires_at": "float8",
}  # fmt: skip
_PROGRAMS = {"sha256": "text", "artifact": "bytea"}
_LOG = {"at": "float8", "session": "text", "hash": "text"}
_EVENTS = {"id": "text", "seq": "bigint", "line": "bytea"}
_PAYLOADS = {"id": "text", "ref": "text", "value": "bytea"}
_ACTIONS = {
    "id": "text", "call": "text", "at": "float8", "action": "text", "outcome": "text",
    "grade": "text", "expires_at": "float8", "arguments": "text", "rest": "text",
}  # fmt: skip


def _rows(columns: dict[str, str], with_: str = "", more: str = "") -> str:
    arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    return f"unnest({arrays}){with_} AS new ({', '.join(columns)}{more})"


def _taken(columns: dict[str, str]) -> str:
    """Of the sessions whose heads were written: the others are refused as wholes."""
    names = ", ".join(f"new.{name}" for name in columns if name != "id")
    return f"SELECT number, {names} FROM head JOIN {_rows(columns)} ON new.id = head.id"


_WITH_THEM = (
    f", written AS (INSERT INTO {{events}} {_taken(_EVENTS)}),"
    f" kept AS (INSERT INTO {{payloads}} {_taken(_PAYLOADS)} ON CONFLICT DO NOTHING),"
    f" acted AS (INSERT INTO {{actions}} {_taken(_ACTIONS)} {ON_CONFLICT})"
    " SELECT id FROM head"
)
CREATE_MANY = (
    f"WITH known AS (INSERT INTO {{programs}} SELECT * FROM {_rows(_PROGRAMS)}"
    " ON CONFLICT DO NOTHING),"
    f" head AS (INSERT INTO {{sessions}} ({', '.join(_SESSIONS)})"
    f" SELECT * FROM {_rows(_SESSIONS)} RETURNING number, id){_WITH_THEM}"
)
LOG_MANY = (
    "INSERT INTO {log} SELECT (SELECT coalesce(max(number), -1) FROM {log}) + new.place, new.at,"
    f" new.session, -1, new.hash, '{NO_ACTIONS}'"
    f" FROM {_rows(_LOG, ' WITH ORDINALITY', ', place')}"
)
"""Numbered on without a gap: whoever writes to the log has locked it."""
ACQUIRE_MANY = (
    "UPDATE {sessions} AS old SET owner = new.owner, token = old.token + 1,"
    f" lease_expires_at = new.expires FROM {_rows(_WANTED)} WHERE old.id = new.id"
    " AND (old.owner = '' OR old.lease_expires_at <= new.now OR new.take_over)"
    " RETURNING old.id, old.token"
)
RELEASE_MANY = (
    "WITH unflushed AS (SELECT set_config('synchronous_commit', 'off', true))"
    " UPDATE {sessions} AS old SET owner = '', token = old.token + 1, lease_expires_at = 0"
    f" FROM unflushed, {_rows(_LEASES)} WHERE old.id = new.id AND old.token = new.token"
)
"""The one statement that nobody waits for the disk for: a server that crashes before it is flushed
forgets it, and then the lease runs out by itself. Whoever takes the session after it is flushed
behind it."""
APPEND_MANY = (
    "WITH head AS (UPDATE {sessions} AS old SET head_seq = new.seq, head_hash = new.hash,"
    " updated_at = new.at, summary = new.summary, lease_expires_at = new.expires"
    f" FROM {_rows(_HEADS)}"
    " WHERE old.id = new.id AND old.token = new.token AND old.head_hash = new.expected"
    f" RETURNING old.number, old.id){_WITH_THEM}"
)
"""Gives back the ids of the sessions that were written."""


def appended(items: Sequence[Append]) -> list[str]:
    """The values of ``APPEND_MANY``."""
    heads = [
        (
            lease.session_id, lease.token, batch.expected.hash, batch.head.seq, batch.head.hash,
            now, text_of(batch.summary), expires,
        )
        for lease, batch, now, expires in items
    ]  # fmt: skip
    batches = [(one.lease.session_id, one.batch) for one in items]
    return [*_columns(heads, _HEADS), *_contents(batches)]


def acquired(items: Sequence[Acquire]) -> list[str]:
    """The values of ``ACQUIRE_MANY``."""
    return _columns(items, _WANTED)


def released(leases: Sequence[Lease]) -> list[str]:
    """The values of ``RELEASE_MANY``."""
    return _columns([(one.session_id, one.token) for one in leases], _LEASES)


def created(items: Sequence[Create], known: Container[str]) -> tuple[list[str], list[str]]:
    """The values of ``CREATE_MANY``, without programs that are ``known``, and of ``LOG_MANY``."""
    programs: dict[str, bytes] = {}
    sessions, entries, batches = [], [], []
    for new, owner, now, expires in items:
        start = genesis(new.id)
        first = new.first or Batch(Head(new.id, -1, start), ())
        for sha256, text in (*new.programs.items(), *first.programs.items()):
            if sha256 not in known:
                programs[sha256] = text.encode()
        sessions.append((
            new.id, now, now, text_of(new.metadata), text_of(first.summary), first.head.seq,
            first.head.hash, owner, 1, expires,
        ))  # fmt: skip
        entries.append((now, new.id, start))
        batches.append((new.id, first))
    return [
        *_columns(sorted(programs.items()), _PROGRAMS),
        *_columns(sessions, _SESSIONS),
        *_contents(batches),
    ], _columns(entries, _LOG)


def _contents(batches: Sequence[tuple[str, Batch]]) -> list[str]:
    events, payloads, actions = [], [], []
    for name, batch in batches:
        for sealed, line in zip(batch.events, batch.encoded(), strict=True):
            events.append((name, sealed.event.seq, line.encode("utf-8")))
        payloads += [(name, ref, text_of(value)) for ref, value in batch.payloads.items()]
        actions += [(name, *row) for row in batch.actions]
    return [
        *_columns(events, _EVENTS),
        *_columns(payloads, _PAYLOADS),
        *_columns(actions, _ACTIONS),
    ]


def _columns(rows: Sequence[Iterable[Any]], names: dict[str, str]) -> list[str]:
    return [array_of(column) for column in zip(*rows, strict=True)] or [array_of(())] * len(names)
