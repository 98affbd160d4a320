"""The tables of a SQLite store, and how older files become newer ones."""

from __future__ import annotations

import re
import sqlite3

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import StoreTooNew

SCHEMA_VERSION = 5
"""What this release writes. A later one adds a migration below and raises it."""


READABLE_FROM = 3
"""The oldest release schema that can still work on a file written by this one: a later
release that only adds tables or columns keeps the number, so that this one goes on. Schema 3
only adds tables, but who does not keep the register up would leave actions out of it."""


OWN_TABLES = frozenset({"meta", "programs", "sessions", "events", "payloads", "signatures"})
"""Every release's: a database without them is not a store."""


EVENTS_PER_SESSION = 1 << 32
"""The ``place`` of an event is the number of its session times this, plus its own."""


UNSETTLED = """(instr(summary, '"status":"unknown"') > 0
    OR (instr(summary, '"open":[]') = 0
        AND (instr(summary, '"open":') > 0 OR instr(summary, '"status":"running"') > 0)))"""
"""What may be left open. The index is used by whoever asks in these words."""


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE programs (sha256 TEXT PRIMARY KEY, artifact TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE sessions (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            metadata TEXT NOT NULL,
            summary TEXT NOT NULL,
            head_seq INTEGER NOT NULL,
            head_hash TEXT NOT NULL,
            owner TEXT NOT NULL,
            token INTEGER NOT NULL,
            lease_expires_at REAL NOT NULL
        )""",
        """CREATE TABLE events (
            session INTEGER NOT NULL REFERENCES sessions (number),
            seq INTEGER NOT NULL,
            line TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        ) WITHOUT ROWID""",
        """CREATE TABLE payloads (
            session INTEGER NOT NULL REFERENCES sessions (number),
            ref TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (session, ref)
        ) WITHOUT ROWID""",
        """CREATE TABLE signatures (
            session INTEGER NOT NULL REFERENCES sessions (number),
            seq INTEGER NOT NULL,
            key TEXT NOT NULL,
            line TEXT NOT NULL,
            PRIMARY KEY (session, seq, key)
        ) WITHOUT ROWID""",
    ),
    # An append rewrites the pages it touches. So what changes with every append stands apart
    # from the metadata, which may be long, and events are keyed by one integer: pages of such a
    # table are split at half the price, and lines up to a page long stay in one.
    (
        """CREATE TABLE heads (
            session INTEGER PRIMARY KEY REFERENCES sessions (number),
            seq INTEGER NOT NULL,
            hash TEXT NOT NULL,
            updated_at REAL NOT NULL,
            owner TEXT NOT NULL,
            token INTEGER NOT NULL,
            lease_expires_at REAL NOT NULL,
            summary TEXT NOT NULL
        )""",
        """INSERT INTO heads SELECT number, head_seq, head_hash, updated_at, owner, token,
            lease_expires_at, summary FROM sessions""",
        "ALTER TABLE sessions DROP COLUMN head_seq",
        "ALTER TABLE sessions DROP COLUMN head_hash",
        "ALTER TABLE sessions DROP COLUMN updated_at",
        "ALTER TABLE sessions DROP COLUMN owner",
        "ALTER TABLE sessions DROP COLUMN token",
        "ALTER TABLE sessions DROP COLUMN lease_expires_at",
        "ALTER TABLE sessions DROP COLUMN summary",
        "ALTER TABLE events RENAME TO events_by_pair",
        "CREATE TABLE events (place INTEGER PRIMARY KEY, line TEXT NOT NULL)",
        f"""INSERT INTO events SELECT session * {EVENTS_PER_SESSION} + seq, line
            FROM events_by_pair ORDER BY session, seq""",
        "DROP TABLE events_by_pair",
    ),
    # The register and the log. A file that has sessions already gets its rows from their traces,
    # on demand, and its entries at the first sealing.
    (
        """CREATE TABLE actions (
            session INTEGER NOT NULL REFERENCES sessions (number),
            call TEXT NOT NULL,
            at REAL NOT NULL,
            action TEXT NOT NULL,
            outcome TEXT NOT NULL,
            grade TEXT NOT NULL,
            expires_at REAL,
            arguments TEXT NOT NULL,
            rest TEXT NOT NULL,
            PRIMARY KEY (session, call)
        ) WITHOUT ROWID""",
        """CREATE TABLE log (
            number INTEGER PRIMARY KEY,
            at REAL NOT NULL,
            session TEXT NOT NULL,
            seq INTEGER NOT NULL,
            hash TEXT NOT NULL,
            actions TEXT NOT NULL
        )""",
        "CREATE TABLE seals (number INTEGER PRIMARY KEY, line TEXT NOT NULL)",
        "INSERT OR REPLACE INTO meta SELECT 'register_due', count(*) FROM sessions",
    ),
    # Decisions that were left for whoever runs a session.
    (
        """CREATE TABLE decisions (
            number INTEGER PRIMARY KEY,
            session INTEGER NOT NULL REFERENCES sessions (number),
            at REAL NOT NULL,
            line TEXT NOT NULL,
            taken INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX decisions_left ON decisions (session) WHERE taken = 0",
    ),
    # For whoever sweeps: written where a call that cannot be undone begins and ends.
    (f"CREATE INDEX heads_unsettled ON heads (session) WHERE {UNSETTLED}",),
)


TABLES = frozenset(re.findall(r"CREATE TABLE (\w+)", " ".join(sum(MIGRATIONS, ()))))
"""Entry n brings a file from schema n to n + 1."""


def written_schema(connection: sqlite3.Connection) -> int:
    """0 for a new file."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return int(version)


def require_readable(connection: sqlite3.Connection, path: str) -> None:
    """A file of a later release is worked on only if that release says so."""
    version = written_schema(connection)
    if version <= SCHEMA_VERSION:
        return
    row = connection.execute("SELECT value FROM meta WHERE name = 'readable_from'").fetchone()
    if row is None or row[0] > SCHEMA_VERSION:
        raise StoreTooNew(
            [
                Diagnostic(
                    "store-too-new",
                    f"this store has schema {version}; this release works up to {SCHEMA_VERSION}",
                    Place(path),
                    "use the release that wrote it, or a later one",
                )
            ]
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Inside a write transaction: all of the missing steps, or none."""
    version = written_schema(connection)
    if version >= SCHEMA_VERSION:
        return
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('readable_from', ?)", (READABLE_FROM,))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
