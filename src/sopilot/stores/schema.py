"""The tables of a store in a database: one schema for SQLite and PostgreSQL.

Every append rewrites a session's head, so heads stand apart from the metadata, which may be long,
and events are keyed by one integer. ``status`` and ``unresolved`` repeat what the summary says, so
that listings and sweeps need not parse it. Documents are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import StoreTooNew

SCHEMA_VERSION = 1
READABLE_FROM = 1
"""The oldest release schema that can still work on a store written by this one: a later release
that only adds tables or columns keeps the number."""

EVENTS_PER_SESSION = 1 << 32
"""The ``place`` of an event is the number of its session times this, plus its own ``seq``."""


class Table(NamedTuple):
    """``columns`` maps a name to its kind. An ``auto`` column is an integer that the database
    counts; ``key`` is the primary key."""

    columns: Mapping[str, str]
    key: tuple[str, ...]

    @property
    def is_counted(self) -> bool:
        return "auto" in self.columns.values()


TABLES: Mapping[str, Table] = {
    "meta": Table({"name": "text", "value": "int"}, ("name",)),
    "programs": Table({"sha256": "text", "artifact": "bytes"}, ("sha256",)),
    "sessions": Table(
        {"number": "auto", "id": "unique text", "created_at": "real", "metadata": "bytes"},
        ("number",),
    ),
    "heads": Table(
        {
            "session": "int", "seq": "int", "hash": "text", "updated_at": "real", "owner": "text",
            "token": "int", "lease_expires_at": "real", "status": "text", "unresolved": "int",
            "summary": "bytes",
        },
        ("session",),
    ),
    "events": Table({"place": "int", "line": "bytes"}, ("place",)),
    "payloads": Table({"session": "int", "ref": "text", "value": "bytes"}, ("session", "ref")),
    "signatures": Table(
        {"session": "int", "seq": "int", "key": "text", "line": "bytes"},
        ("session", "seq", "key"),
    ),
    "actions": Table(
        {
            "session": "int", "call": "text", "at": "real", "action": "text", "outcome": "text",
            "proof": "text", "expires_at": "optional real", "arguments": "text", "rest": "text",
        },
        ("session", "call"),
    ),
    "log": Table(
        {
            "number": "int", "at": "real", "session": "text", "seq": "int", "hash": "text",
            "actions": "text",
        },
        ("number",),
    ),
    "seals": Table({"number": "auto", "line": "bytes"}, ("number",)),
    "decisions": Table(
        {"number": "auto", "session": "int", "at": "real", "line": "bytes", "acknowledged": "int"},
        ("number",),
    ),
}  # fmt: skip
"""In the order in which a copy fills them."""

INDEXES = (
    "CREATE INDEX heads_unresolved ON {heads} (session) WHERE unresolved = 1",
    "CREATE INDEX decisions_pending ON {decisions} (session) WHERE acknowledged = 0",
)


def create_statements(types: Mapping[str, str], *, without_rowid: str = "") -> list[str]:
    """Return the statements that make every table, with table names in braces.

    ``types`` maps a kind to the database's type; ``without_rowid`` follows tables whose key isn't
    one integer."""
    statements = []
    for name, table in TABLES.items():
        columns = [f"{column} {types[kind]}" for column, kind in table.columns.items()]
        columns.append(f"PRIMARY KEY ({', '.join(table.key)})")
        numbered = len(table.key) == 1 and table.columns[table.key[0]] in ("int", "auto")
        ending = "" if numbered else without_rowid
        statements.append(f"CREATE TABLE {{{name}}} ({', '.join(columns)}){ending}")
    return [*statements, *INDEXES]


def require_readable(version: int, readable_from: int | None, path: str = "") -> None:
    """Refuse a store of a later release, unless that release says that this one can use it."""
    if version <= SCHEMA_VERSION:
        return
    if readable_from is None or readable_from > SCHEMA_VERSION:
        message = f"this store has schema {version}; this release works up to {SCHEMA_VERSION}"
        cure = "use the release that wrote it, or a later one"
        raise StoreTooNew([Diagnostic("store-too-new", message, Place(path), cure)])
