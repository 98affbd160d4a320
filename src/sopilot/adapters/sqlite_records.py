"""The register of actions and the log of sessions in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from sopilot.adapters.record_filters import digests_of, filters, read_seal
from sopilot.adapters.sqlite_connection import SQLiteFile
from sopilot.runtime.records import ActionRow, Wanted
from sopilot.runtime.records.log import NO_ACTIONS, LogEntry, SealedHead, digest_of
from sopilot.runtime.trace import Head
from sopilot.runtime.vm.values import spell

_UPSERT = "INSERT OR REPLACE INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def add_actions(db: sqlite3.Connection, number: int, rows: Sequence[ActionRow]) -> None:
    """In the transaction of the events they were made from."""
    for row in rows:
        db.execute(_UPSERT, (number, *row))


def add_entry(db: sqlite3.Connection, at: float, head: Head, actions: str = NO_ACTIONS) -> None:
    """One number behind the last: whoever writes has the file for itself."""
    db.execute(
        "INSERT INTO log SELECT coalesce(max(number) + 1, 0), ?, ?, ?, ?, ? FROM log",
        (at, *head, actions),
    )


def _ids(db: sqlite3.Connection) -> dict[int, str]:
    """Number → id, from the index alone: the table itself holds the metadata, which is long."""
    return dict(
        db.execute("SELECT number, id FROM sessions INDEXED BY sqlite_autoindex_sessions_1")
    )


class SQLiteRecords:
    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        where, values = filters(wanted, "?")
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT sessions.id, call, at, action, outcome, grade, expires_at, arguments, rest"
                f" FROM actions JOIN sessions ON session = number{where}"
                " ORDER BY at DESC, session DESC, call",
                values,
            ).fetchall()
        return [(row[0], ActionRow(*row[1:])) for row in rows]

    async def count_actions(self) -> int:
        async with self._file.reading() as db:
            return int(db.execute("SELECT count(*) FROM actions").fetchone()[0])

    async def count_sessions(self) -> int:
        async with self._file.reading() as db:
            return int(
                db.execute(
                    "SELECT count(*) FROM sessions WHERE substr(id, 1, 8) <> 'journal.'"
                ).fetchone()[0]
            )

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        async with self._file.writing() as db:
            found = db.execute(
                "SELECT number FROM sessions JOIN heads ON session = number"
                " WHERE id = ? AND hash = ?",
                (head.session_id, head.hash),
            ).fetchone()
            if found is None:
                return False
            db.execute("DELETE FROM actions WHERE session = ?", found)
            add_actions(db, found[0], rows)
        return True

    async def rebuild_is_due(self) -> bool:
        async with self._file.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE name = 'register_due'").fetchone()
        return row is not None and row[0] > 0

    async def rebuilt(self) -> None:
        async with self._file.writing() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('register_due', 0)")

    async def heads(self) -> list[Head]:
        async with self._file.reading() as db:
            ids = _ids(db)
            rows = db.execute("SELECT session, seq, hash FROM heads ORDER BY session").fetchall()
        return [Head(ids[number], seq, digest) for number, seq, digest in rows if number in ids]

    async def digests(self) -> dict[str, str]:
        async with self._file.reading() as db:
            ids = _ids(db)
            rows = db.execute(
                "SELECT session, call, at, action, outcome, grade, expires_at, arguments, rest"
                " FROM actions ORDER BY session, call"
            )
            return {ids.get(number, ""): digest for number, digest in digests_of(rows).items()}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT number, at, session, seq, hash, actions FROM log WHERE number > ?"
                " ORDER BY number",
                (after,),
            ).fetchall()
        return list(map(LogEntry._make, rows))

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        async with self._file.writing() as db:
            for session_id in session_ids:
                number, seq, digest = db.execute(
                    "SELECT number, seq, hash FROM sessions JOIN heads ON session = number"
                    " WHERE id = ?",
                    (session_id,),
                ).fetchone()
                rows = db.execute(
                    "SELECT call, at, action, outcome, grade, expires_at, arguments, rest"
                    " FROM actions WHERE session = ?",
                    (number,),
                ).fetchall()
                actions = digest_of(ActionRow(*row) for row in rows)
                add_entry(db, at, Head(session_id, seq, digest), actions)

    async def add_seal(self, seal: SealedHead) -> None:
        async with self._file.writing() as db:
            db.execute("INSERT INTO seals (line) VALUES (?)", (spell(seal.as_json()),))

    async def seals(self) -> list[SealedHead]:
        async with self._file.reading() as db:
            rows = db.execute("SELECT line FROM seals ORDER BY number").fetchall()
        return [read_seal(line) for (line,) in rows]
