"""Sessions in one SQLite file: the embedded default."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from sopilot.messages.errors import StoreCorrupt, StoreUnavailable
from sopilot.records.log import NO_ACTIONS
from sopilot.records.store import Append, Batch
from sopilot.stores.schema import (
    EVENTS_PER_SESSION,
    READABLE_FROM,
    SCHEMA_VERSION,
    TABLES,
    create_statements,
    require_readable,
)
from sopilot.stores.sql import (
    ADD_ACTION,
    Create,
    Row,
    SqlStore,
    Transaction,
    encoded_lines,
    state_columns,
)
from sopilot.trace.chain import genesis
from sopilot.values.json import canonical

if sys.platform != "win32":
    import fcntl

_TYPES = {
    "auto": "INTEGER",
    "int": "INTEGER NOT NULL",
    "real": "REAL NOT NULL",
    "optional real": "REAL",
    "text": "TEXT NOT NULL",
    "unique text": "TEXT NOT NULL UNIQUE",
    "bytes": "BLOB NOT NULL",
}
_NAMES = {name: name for name in TABLES}
_MAGIC = b"SQLite format 3\0"
_FIRST_WAIT = 0.001
_LONGEST_WAIT = 0.05
_BLOCKING_WAIT_MS = 50
_BATCH = 1000
_MOST_NUMBERS = 10_000
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NEEDS_A_WRITER = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_OPENING = threading.Lock()

_ADD_HEAD = (
    "INSERT INTO heads (session, seq, hash, updated_at, owner, token, lease_expires_at, status,"
    " unresolved, summary) VALUES (?, -1, ?, ?, ?, 1, ?, 'new', 0, ?)"
)
_ADD_ENTRY = (
    "INSERT INTO log (number, at, session, seq, hash, actions)"
    f" SELECT coalesce(max(number) + 1, 0), ?, ?, -1, ?, '{NO_ACTIONS}' FROM log"
)
_WRITE_HEAD = (
    "UPDATE heads SET seq = ?, hash = ?, updated_at = ?, lease_expires_at = ?, status = ?,"
    " unresolved = ?, summary = ? WHERE session = ? AND token = ? AND hash = ?"
)
_ADD_ACTION = ADD_ACTION.format_map(_NAMES)


_UNCOMPACTED = "('uncompacted', 1)"
"""The row of ``meta`` in a file that may still hold erased contents."""
_IS_UNCOMPACTED = f"SELECT 1 FROM meta WHERE (name, value) = {_UNCOMPACTED}"


class SQLiteTransaction:
    """Statements on one connection. No method suspends: a transaction isn't interrupted."""

    __slots__ = ("_statements", "connection")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._statements: dict[str, str] = {}

    def _sql(self, text: str) -> str:
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = text.format_map(_NAMES)
        return statement

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.connection.execute(self._sql(sql), values).fetchall()

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self.connection.execute(self._sql(sql), values).rowcount

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(self._sql(sql), rows)

    async def batches(self, sql: str, values: Sequence[Any] = ()) -> AsyncIterator[list[Row]]:
        cursor = self.connection.execute(self._sql(sql), values)
        while rows := cursor.fetchmany(_BATCH):
            yield rows


class SQLiteStore(SqlStore):
    """A file that is opened on first use. Its writers take turns through ``<file>.lock``.

    ``synchronous`` FULL survives a power cut after every append; NORMAL survives crashes of the
    process, and doesn't wait for the disk.

    SQLite has its own write lock. The second one also covers checkpoints: the
    system's library may be one in which a checkpoint can race with another
    connection's commit. All threads and event loops of a process share one
    connection, and take turns at it.
    """

    concurrent = 1

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        busy_seconds: float = 5.0,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self._synchronous = synchronous
        self._busy_seconds = busy_seconds
        self.opened: SQLiteTransaction | None = None
        self._lock_file: int | None = None
        self._in_use = threading.Lock()
        """Held by the thread whose transaction uses the connection."""
        self._numbers: dict[str, int] = {}
        """Session id → number, of sessions that are appended to here: it never changes."""

    # --- transactions -----------------------------------------------------------------

    @asynccontextmanager
    async def read(self, *, snapshot: bool = False) -> AsyncIterator[Transaction]:
        """Readers wait for writers of this object alone. Where nothing was written through it,
        reading leaves nothing behind."""
        if self.opened is None and await self._can_only_read():
            with translated(self.path), _read_only(self.path) as db, _snapshot(db, snapshot):
                yield SQLiteTransaction(db)
            return
        transaction = await self.open()
        if not self._in_use.acquire(blocking=False):
            await self._wait_for(lambda: self._in_use.acquire(blocking=False))
        try:
            with translated(self.path), _snapshot(transaction.connection, snapshot):
                yield transaction
        finally:
            self._in_use.release()

    @asynccontextmanager
    async def write(self, *, snapshot: bool = False) -> AsyncIterator[SQLiteTransaction]:
        """A writer has the file for itself, so every transaction sees one moment."""
        transaction = self.opened or await self._open()
        connection = transaction.connection
        if not self._takes_turn():
            await self._wait_for(self._takes_turn)
        try:
            if not (self._begins(connection) or await self._succeeds(self._begins, connection)):
                raise StoreUnavailable(
                    f"{self.path} is locked by another program; nothing was written"
                )
            try:
                yield transaction
                connection.execute("COMMIT")
            except (sqlite3.Error, UnicodeDecodeError) as problem:
                raise unavailable(self.path, problem) from problem
            finally:
                if connection.in_transaction:
                    with translated(self.path):
                        connection.execute("ROLLBACK")
        finally:
            self._end_turn()

    write_once = write

    async def _can_only_read(self) -> bool:
        """Return False after a crash of a writer, which only another writer can repair."""
        try:
            with translated(self.path), _read_only(self.path) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except StoreUnavailable as problem:
            cause = problem.__cause__
            if isinstance(cause, sqlite3.Error) and _code(cause) in _NEEDS_A_WRITER:
                return False
            raise
        return True

    # --- writes -----------------------------------------------------------------------

    async def create_many(self, items: Sequence[Create]) -> list[bool]:
        async with self.write() as transaction:
            return [self._create_session(transaction.connection, item) for item in items]

    def _create_session(self, db: sqlite3.Connection, item: Create) -> bool:
        session, owner, now, expires = item
        added = db.execute(
            "INSERT INTO sessions (id, created_at, metadata) VALUES (?, ?, ?)"
            " ON CONFLICT DO NOTHING RETURNING number",
            (session.id, now, canonical(session.metadata)),
        ).fetchall()
        if not added:
            return False
        [(number,)] = added
        start = genesis(session.id)
        _add_programs(db, session.programs)
        db.execute(_ADD_HEAD, (number, start, now, owner, expires, b"{}"))
        db.execute(_ADD_ENTRY, (now, session.id, start))
        if session.first is not None:
            _append(db, number, 1, session.first, now, expires)
        return True

    async def append_many(self, db: Transaction, items: Sequence[Append]) -> list[bool]:
        assert isinstance(db, SQLiteTransaction)
        return [self._append_batch(db.connection, item) for item in items]

    def _append_batch(self, db: sqlite3.Connection, item: Append) -> bool:
        session_id = item.lease.session_id
        number = self._numbers.get(session_id)
        if number is None:
            row = db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
            if row is None:
                return False
            if len(self._numbers) >= _MOST_NUMBERS:
                self._numbers.clear()
            number = self._numbers[session_id] = int(row[0])
        _, batch, now, expires = item
        return _append(db, number, item.lease.token, batch, now, expires)

    async def lock_log(self, db: Transaction) -> None:
        """A writer has the whole file."""

    async def migrate(self) -> int:
        await self.open()
        return SCHEMA_VERSION

    async def require_deletion(self) -> None:
        """A process that may write to the file may delete from it."""

    async def must_compact(self, db: Transaction) -> None:
        await db.execute(f"INSERT INTO {{meta}} VALUES {_UNCOMPACTED} ON CONFLICT DO NOTHING")

    async def compact(self) -> None:
        """Write the file anew: SQLite leaves deleted rows where they stood."""
        transaction = await self.open()
        async with self._turn():
            with translated(self.path):
                _compact(transaction.connection)

    async def count_on(self, db: Transaction) -> None:
        """SQLite counts on behind the largest number."""

    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        counts: dict[str, tuple[int, int | None]] = {}
        async with self.read() as db:
            for table in TABLES:
                [(rows,)] = await db.rows(f"SELECT count(*) FROM {table}")
                counts[table] = (rows, None)
        files = (self.path.with_name(self.path.name + end) for end in ("", "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        return {**counts, "total": (counts["sessions"][0], size)}

    # --- the file ---------------------------------------------------------------------

    async def open(self) -> SQLiteTransaction:
        return self.opened or await self._open()

    async def close(self) -> None:
        self._numbers.clear()
        if self.opened is not None:
            async with self._turn():
                transaction, self.opened = self.opened, None
                if transaction is not None:
                    transaction.connection.close()  # the last one checkpoints as it closes
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    async def _open(self) -> SQLiteTransaction:
        with translated(self.path):
            require_store(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _OPENING:
                if self._lock_file is None:
                    self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise StoreUnavailable(f"{self.path}: {problem.strerror}") from problem
        async with self._turn():
            if self.opened is not None:
                return self.opened  # another task was first
            with translated(self.path):
                # The file holds what users said and tools answered: it is its owner's alone.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                connection = sqlite3.connect(
                    self.path,
                    isolation_level=None,
                    timeout=self._busy_seconds,
                    check_same_thread=False,
                )
                try:
                    self._prepare(connection)
                except BaseException:
                    connection.close()
                    raise
            self.opened = SQLiteTransaction(connection)
        return self.opened

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA mmap_size = 0")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        if not _has_tables(connection, self.path):
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                _make_tables(connection)
        # From here on waiting is ours: SQLite's blocks the event loop.
        connection.execute(f"PRAGMA busy_timeout = {_BLOCKING_WAIT_MS:d}")
        if connection.execute(_IS_UNCOMPACTED).fetchone():  # a process died after it erased
            with suppress(sqlite3.OperationalError):  # another program is at work: next time
                _compact(connection)

    def _begins(self, connection: sqlite3.Connection) -> bool:
        """Begin a transaction; return False while another program writes."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as problem:
            if _code(problem) not in _BUSY:
                raise unavailable(self.path, problem) from problem
            return False
        return True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        await self._wait_for(self._takes_turn)
        try:
            yield
        finally:
            self._end_turn()

    async def _wait_for(self, attempt: Callable[[], bool]) -> None:
        if not await self._succeeds(attempt):
            raise StoreUnavailable(
                f"{self.path} is locked: another writer kept it for "
                f"{self._busy_seconds:g} s; nothing was written"
            )

    async def _succeeds(self, attempt: Callable[..., bool], *values: object) -> bool:
        """Try until it works or the time is over, with growing pauses."""
        deadline, pause = time.monotonic() + self._busy_seconds, _FIRST_WAIT
        while not attempt(*values):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            await asyncio.sleep(min(pause, remaining))
            pause = min(pause * 2, _LONGEST_WAIT)
        return True

    def _takes_turn(self) -> bool:
        if not self._in_use.acquire(blocking=False):
            return False
        if sys.platform != "win32" and self._lock_file is not None:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._in_use.release()
                return False
        return True

    def _end_turn(self) -> None:
        if sys.platform != "win32" and self._lock_file is not None:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)
        self._in_use.release()


def _compact(db: sqlite3.Connection) -> None:
    """Write the file anew and cut its log. A program that reads keeps the log from being cut:
    then it is cut when the store is opened again."""
    db.execute("VACUUM")
    ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if not busy:
        db.execute(f"DELETE FROM meta WHERE (name, value) = {_UNCOMPACTED}")


def _append(
    db: sqlite3.Connection, number: int, token: int, batch: Batch, now: float, expires: float
) -> bool:
    head = batch.head
    values = (
        head.seq, head.hash, now, expires, *state_columns(batch.summary),
        canonical(batch.summary), number, token, batch.expected.hash,
    )  # fmt: skip
    if db.execute(_WRITE_HEAD, values).rowcount != 1:
        return False
    first = number * EVENTS_PER_SESSION
    for sealed, line in zip(batch.events, encoded_lines(batch), strict=True):
        db.execute("INSERT INTO events VALUES (?, ?)", (first + sealed.event.seq, line))
    for ref, value in batch.payloads.items():
        db.execute(
            "INSERT INTO payloads VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (number, ref, canonical(value)),
        )
    if batch.programs:
        _add_programs(db, batch.programs)
    for row in batch.actions:
        db.execute(_ADD_ACTION, (number, *row))
    return True


def _add_programs(db: sqlite3.Connection, programs: Mapping[str, str]) -> None:
    db.executemany(
        "INSERT INTO programs VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(sha256, text.encode()) for sha256, text in programs.items()],
    )


# --- a file that is there -------------------------------------------------------------


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return False for a new file; raise for one of a release that this one can't work with."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        row = connection.execute("SELECT value FROM meta WHERE name = 'readable_from'").fetchone()
        require_readable(version, row[0] if row else None, str(path))
    return version > 0


def _make_tables(connection: sqlite3.Connection) -> None:
    """Run this inside a write transaction, so that it makes all tables or none."""
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return  # another process was first
    for statement in create_statements(_TYPES, without_rowid=" WITHOUT ROWID"):
        connection.execute(statement.format_map(_NAMES))
    connection.execute("INSERT INTO meta VALUES ('readable_from', ?)", (READABLE_FROM,))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")


def require_store(path: Path) -> None:
    """Refuse a file that is something else, before anything is written to it. An empty or missing
    one is fine."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise StoreCorrupt(f"{path} is not a store of sessions: it isn't a file; name another")
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
    except (FileNotFoundError, NotADirectoryError):
        return
    if not begin:
        return
    if begin != _MAGIC:
        raise StoreCorrupt(
            f"{path} is not a store of sessions: its first bytes are wrong; "
            "name another file, or restore a copy if it was a store"
        )
    with _unchanged(path) as connection:
        rows = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
    if alien := next((name for name, *rest in rows if not _is_plain(name, *rest)), None):
        raise StoreCorrupt(
            f"{path} was changed: `{alien}` is a trigger, or replaces a table, which sopilot "
            "never does; restore a copy"
        )
    if rows and not {name for name, _, _ in rows} >= TABLES.keys():
        raise StoreCorrupt(
            f"{path} is a database of another program: it has no sessions, and nothing was "
            "written to it; name another file"
        )


def _is_plain(name: str, kind: str, sql: str | None) -> bool:
    """A trigger changes what is written, and a view in a table's place may be endless."""
    table = kind == "table" and str(sql).startswith("CREATE TABLE")
    return kind != "trigger" and (table or name.lower() not in TABLES)


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file without changing it. A missing file reads as an empty store."""
    require_store(path)
    with ExitStack() as stack:
        if path.exists():
            connection = stack.enter_context(_unchanged(path))
            if _has_tables(connection, path):
                yield connection
                return
        empty = stack.enter_context(closing(sqlite3.connect(":memory:", isolation_level=None)))
        _make_tables(empty)
        yield empty


@contextmanager
def _snapshot(connection: sqlite3.Connection, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def _unchanged(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that leaves nothing beside the file.

    Where no writer has the file open, SQLite would make the files that they share. ``immutable``
    tells it that the file won't change; our own writers don't while their lock is shared."""
    with ExitStack() as stack:
        alone = not path.with_name(f"{path.name}-wal").exists() and _shared_lock(path, stack)
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        yield stack.enter_context(closing(connection))


def _shared_lock(path: Path, stack: ExitStack) -> bool:
    """Return whether no writer is active. Without a lock file there never was one."""
    if sys.platform == "win32":
        return True
    try:
        lock = os.open(f"{path}.lock", os.O_RDONLY)
    except OSError:
        return True
    stack.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- waiting and errors ---------------------------------------------------------------


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what SQLite and the system raise as ``StoreUnavailable``."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        raise unavailable(path, problem) from problem
    except OSError as problem:
        raise StoreUnavailable(f"{path}: {problem.strerror}") from problem


def unavailable(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> StoreUnavailable:
    if isinstance(problem, UnicodeDecodeError):
        # A damaged name in the schema, quoted by SQLite's own message about it.
        return StoreCorrupt(f"{path} is damaged: it contains invalid text; restore a copy of it")
    code = _code(problem)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(f"{path} is damaged or not a store ({problem}); restore a copy of it")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"{path}: no space is left; the session is as it was before")
    if code in _BUSY:
        return StoreUnavailable(f"{path} is locked by another program; nothing was written")
    return StoreUnavailable(f"{path}: {problem}; the session is as it was before")


def _code(problem: sqlite3.Error) -> int:
    return (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF
