"""All rows of a SQLite store, for copies of it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sopilot.adapters.sqlite_connection import SQLiteFile
from sopilot.adapters.sqlite_schema import EVENTS_PER_SESSION
from sopilot.runtime.vm.values import Fields, spell

_BATCH = 1000
_OF = "session IN (SELECT number FROM temp.wanted)"
_ACTIONS = "session, call, at, action, outcome, grade, expires_at, arguments, rest"
_READ: Mapping[str, tuple[str, str]] = {
    "meta": ("SELECT name, value FROM meta WHERE name = 'register_due'", ""),
    "programs": ("SELECT sha256, artifact FROM programs", ""),
    "sessions": (
        "SELECT number, id, created_at, updated_at, metadata, summary, seq, hash, token"
        " FROM sessions JOIN heads ON session = number",
        "number IN (SELECT number FROM temp.wanted)",
    ),
    "events": (
        f"SELECT place / {EVENTS_PER_SESSION}, place % {EVENTS_PER_SESSION}, line FROM events",
        f"place / {EVENTS_PER_SESSION} IN (SELECT number FROM temp.wanted)",
    ),
    "payloads": ("SELECT session, ref, value FROM payloads", _OF),
    "signatures": ("SELECT session, seq, key, line FROM signatures", _OF),
    "actions": (f"SELECT {_ACTIONS} FROM actions", _OF),
    "decisions": ("SELECT number, session, at, line, taken FROM decisions", _OF),
    "log": ("SELECT number, at, session, seq, hash, actions FROM log ORDER BY number", ""),
    "seals": ("SELECT number, line FROM seals ORDER BY number", ""),
}
"""Table → its columns as every store gives them, and which rows are some sessions' own."""
_SESSIONS = (
    ("INSERT INTO sessions (number, id, created_at, metadata) VALUES (?, ?, ?, ?)", (0, 1, 2, 4)),
    (
        "INSERT INTO heads (session, seq, hash, updated_at, token, summary, owner,"
        " lease_expires_at) VALUES (?, ?, ?, ?, ? + 1, ?, '', 0)",
        (0, 6, 7, 3, 8, 5),
    ),
)
_FILL: Mapping[str, str] = {
    "meta": "INSERT OR REPLACE INTO meta VALUES (?, ?)",
    "programs": "INSERT OR IGNORE INTO programs VALUES (?, ?)",
    "events": f"INSERT INTO events VALUES (? * {EVENTS_PER_SESSION} + ?, ?)",
    "payloads": "INSERT INTO payloads VALUES (?, ?, ?)",
    "signatures": "INSERT INTO signatures VALUES (?, ?, ?, ?)",
    "actions": f"INSERT INTO actions ({_ACTIONS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "decisions": "INSERT INTO decisions VALUES (?, ?, ?, ?, ?)",
    "log": "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
    "seals": "INSERT INTO seals VALUES (?, ?)",
}


class SQLiteCopies:
    _file: SQLiteFile

    @asynccontextmanager
    async def read_rows(self) -> AsyncIterator[Any]:
        async with self._file.reading() as db:
            db.execute("CREATE TEMP TABLE wanted (number INTEGER PRIMARY KEY)")
            db.execute("BEGIN")
            try:
                yield lambda table, only: _read(db, table, only)
            finally:
                db.execute("ROLLBACK")
                db.execute("DROP TABLE temp.wanted")

    @asynccontextmanager
    async def fill_rows(self) -> AsyncIterator[Any]:
        async with self._file.writing() as db:

            async def fill(table: str, rows: list[Sequence[Any]]) -> None:
                if table != "sessions":
                    db.executemany(_FILL[table], rows)
                    return
                for statement, columns in _SESSIONS:
                    db.executemany(statement, [[row[at] for at in columns] for row in rows])

            yield fill

    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        found: dict[str, tuple[int, int | None]] = {}
        async with self._file.reading() as db:
            for table in _READ:
                rows = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                found[table] = (rows, None)
        files = (self._file.path.with_name(self._file.path.name + end) for end in ("", "-wal"))
        size = sum(one.stat().st_size for one in files if one.exists())
        return {**found, "total": (found["sessions"][0], size)}

    async def prune(self, metadata: Mapping[str, Fields]) -> None:
        async with self._file.writing() as db:
            for session_id, kept in metadata.items():
                (number,) = db.execute(
                    "UPDATE sessions SET metadata = ? WHERE id = ? RETURNING number",
                    (spell(dict(kept)), session_id),
                ).fetchone()
                first = number * EVENTS_PER_SESSION
                db.execute(
                    "DELETE FROM events WHERE place >= ? AND place < ?",
                    (first, first + EVENTS_PER_SESSION),
                )
                for table in ("payloads", "decisions", "signatures"):
                    db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
        await self._file.write_anew()


async def _read(
    db: sqlite3.Connection, table: str, only: Collection[str] | None
) -> AsyncIterator[list[Sequence[Any]]]:
    query, own = _READ[table]
    if only is not None and own:
        db.execute("DELETE FROM temp.wanted")
        db.executemany(
            "INSERT INTO temp.wanted SELECT number FROM main.sessions WHERE id = ?",
            [(one,) for one in only],
        )
        query = f"{query} WHERE {own}"
    cursor = db.execute(query)
    while rows := cursor.fetchmany(_BATCH):
        yield rows
