"""One SQLite file: transactions that wait without blocking, and errors that say what to do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from types import TracebackType

from sopilot.adapters.sqlite_schema import (
    OWN_TABLES,
    SCHEMA_VERSION,
    TABLES,
    migrate,
    require_readable,
    written_schema,
)
from sopilot.runtime.session import StoreCorrupt, StoreUnavailable

if sys.platform != "win32":
    import fcntl

_FIRST_WAIT = 0.001
_LONGEST_WAIT = 0.05
_BLOCKING_WAIT_MS = 50
_BEGIN = "BEGIN IMMEDIATE"
_NEEDS_A_WRITER = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_MAGIC = b"SQLite format 3\0"
_OPENING = threading.Lock()


class SQLiteFile:
    """Opened on first use. Writers of one file take turns through ``<file>.lock``.

    SQLite has its own write lock. The second one also covers checkpoints: the
    system's library may be one in which a checkpoint can race with another
    connection's commit. All threads and event loops of a process share one
    connection, and take turns at it.
    """

    def __init__(self, path: Path, *, synchronous: str, busy_seconds: float) -> None:
        self.path = path
        self._synchronous = synchronous
        self._busy_seconds = busy_seconds
        self.opened: sqlite3.Connection | None = None
        self._lock_file: int | None = None
        self._in_use = threading.Lock()
        """The connection: a transaction is one thread's alone."""

    def writing(self) -> WriteTransaction:
        """A write transaction, durable when the block ends. The block must not await."""
        return WriteTransaction(self)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[sqlite3.Connection]:
        """Readers never wait for writers here, but for the recovery of a crashed one. Where
        nothing was written through this object, reading leaves nothing behind either."""
        if self.opened is None and await self._can_only_read():
            with translated(self.path), _read_only(self.path) as connection:
                yield connection
            return
        connection = await self.connection()
        if not self._in_use.acquire(blocking=False):
            await self._wait_for(lambda: self._in_use.acquire(blocking=False))
        try:
            with translated(self.path):
                yield connection
        finally:
            self._in_use.release()

    async def _can_only_read(self) -> bool:
        """Not where a writer has crashed: only one who may write can mend that."""
        try:
            with translated(self.path), _read_only(self.path) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except StoreUnavailable as problem:
            cause = problem.__cause__
            if isinstance(cause, sqlite3.Error) and _code(cause) in _NEEDS_A_WRITER:
                return False
            raise
        return True

    async def write_anew(self) -> None:
        """The file without what was deleted from it, which SQLite leaves where it stood."""
        connection = await self.connection()
        async with self._turn():
            with translated(self.path):
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def connection(self) -> sqlite3.Connection:
        return self.opened or await self._open()

    async def close(self) -> None:
        if self.opened is not None:
            async with self._turn():
                connection, self.opened = self.opened, None
                if connection is not None:
                    connection.close()  # the last one checkpoints as it closes
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    async def _open(self) -> sqlite3.Connection:
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
                return self.opened  # somebody else was first
            with translated(self.path):
                # The file holds what users said and tools answered: it is its owner's alone.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                connection = sqlite3.connect(
                    self.path,
                    isolation_level=None,
                    timeout=self._busy_seconds,
                    check_same_thread=False,
                )
                ready = False
                try:
                    self._prepare(connection)
                    ready = True
                finally:
                    if not ready:
                        connection.close()
            self.opened = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA mmap_size = 0")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        require_readable(connection, str(self.path))
        if written_schema(connection) < SCHEMA_VERSION:
            connection.execute(_BEGIN)
            try:
                migrate(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        # From here on waiting is ours: SQLite's blocks the event loop.
        connection.execute(f"PRAGMA busy_timeout = {_BLOCKING_WAIT_MS:d}")

    async def begin(self, connection: sqlite3.Connection) -> None:
        """Waits while another program writes."""
        waits: _Waits | None = None
        while True:
            try:
                connection.execute(_BEGIN)
                return
            except sqlite3.OperationalError as problem:
                waits = waits or _Waits(self._busy_seconds)
                if not _is_busy(problem) or not await waits.again():
                    raise unavailable(self.path, problem) from problem

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        await self.take_turn()
        try:
            yield
        finally:
            self.end_turn()

    async def take_turn(self) -> None:
        await self._wait_for(self.try_turn)

    async def _wait_for(self, attempt: Callable[[], bool]) -> None:
        waits = _Waits(self._busy_seconds)
        while not attempt():
            if not await waits.again():
                raise StoreUnavailable(
                    f"{self.path} is locked: another writer kept it for "
                    f"{self._busy_seconds:g} s; nothing was written"
                )

    def try_turn(self) -> bool:
        if not self._in_use.acquire(blocking=False):
            return False
        if sys.platform != "win32" and self._lock_file is not None:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._in_use.release()
                return False
        return True

    def end_turn(self) -> None:
        if sys.platform != "win32" and self._lock_file is not None:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)
        self._in_use.release()


def require_store(path: Path) -> None:
    """Raises for a file that is something else, before anything is written to it. One that is
    empty, or not there, is welcome."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise StoreCorrupt(f"{path} is not a store of sessions: it is no file; name another")
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
    except (FileNotFoundError, NotADirectoryError):
        return
    if not begin:
        return
    if begin != _MAGIC:
        raise StoreCorrupt(
            f"{path} is not a store of sessions: it does not begin as one; "
            "name another file, or restore a copy if it was one"
        )
    with _unchanged(path) as connection:
        rows = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
    found = {name for name, _, _ in rows}
    if alien := next((name for name, *what in rows if not _plain(name, *what)), None):
        raise StoreCorrupt(
            f"{path} does more than keep what is written to it: `{alien}` is a trigger, or stands "
            "in a table's place, and no release of ours made it; restore a copy"
        )
    if found and not found >= OWN_TABLES:
        raise StoreCorrupt(
            f"{path} is a database of something else: it has no sessions in it, and nothing was "
            "written to it; name another file"
        )


def _plain(name: str, kind: str, sql: str | None) -> bool:
    """A trigger changes what is written, and a view in a table's place may have no end."""
    table = kind == "table" and str(sql).startswith("CREATE TABLE")
    return kind != "trigger" and (table or name.lower() not in TABLES)


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """What is there, up to date: of an older release a copy, where nobody sees it."""
    require_store(path)
    with ExitStack() as stack:
        source = stack.enter_context(_unchanged(path)) if path.exists() else None
        if source is not None:
            require_readable(source, str(path))
            if written_schema(source) >= SCHEMA_VERSION:
                yield source
                return
        copy = stack.enter_context(closing(sqlite3.connect(":memory:", isolation_level=None)))
        if source is not None:
            source.backup(copy)
        migrate(copy)
        yield copy


@contextmanager
def _unchanged(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves nothing beside the file. Where no writer has one open, SQLite
    would make the files that they share: it is told that nobody changes anything, which our
    own writers do not while their lock is shared."""
    with ExitStack() as stack:
        alone = not path.with_name(f"{path.name}-wal").exists() and _shared_lock(path, stack)
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        yield stack.enter_context(closing(connection))


def _shared_lock(path: Path, stack: ExitStack) -> bool:
    """Whether nobody writes meanwhile. Without a lock file nobody ever did."""
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


class WriteTransaction:
    """Written out by hand: generators would cost as much as the transaction itself."""

    __slots__ = ("_connection", "_file")

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    async def __aenter__(self) -> sqlite3.Connection:
        file = self._file
        connection = self._connection = file.opened or await file.connection()
        if not file.try_turn():
            await file.take_turn()
        begun = False
        try:
            try:
                connection.execute(_BEGIN)
            except sqlite3.OperationalError:
                await file.begin(connection)
            begun = True
        finally:
            if not begun:
                file.end_turn()
        return connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        connection = self._connection
        try:
            if kind is None:
                connection.execute("COMMIT")
        except sqlite3.Error as refused:
            raise unavailable(self._file.path, refused) from refused
        finally:
            try:
                if connection.in_transaction:
                    with translated(self._file.path):
                        connection.execute("ROLLBACK")
            finally:
                self._file.end_turn()
        if isinstance(problem, sqlite3.Error | UnicodeDecodeError):
            raise unavailable(self._file.path, problem) from problem


class _Waits:
    """Growing pauses up to a deadline."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._next = _FIRST_WAIT

    async def again(self) -> bool:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(self._next, left))
        self._next = min(self._next * 2, _LONGEST_WAIT)
        return True


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """What SQLite raises, in the store's words."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        raise unavailable(path, problem) from problem
    except OSError as problem:
        raise StoreUnavailable(f"{path}: {problem.strerror}") from problem


def unavailable(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> StoreUnavailable:
    if isinstance(problem, UnicodeDecodeError):
        # A damaged name in the schema, quoted by SQLite's own message about it.
        return StoreCorrupt(f"{path} is damaged: it holds text that is none; restore a copy of it")
    code = _code(problem)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(f"{path} is damaged or not a store ({problem}); restore a copy of it")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"{path}: no space is left; the session is as it was before")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(f"{path} is locked by another program; nothing was written")
    return StoreUnavailable(f"{path}: {problem}; the session is as it was before")


def _is_busy(problem: sqlite3.Error) -> bool:
    return _code(problem) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(problem: sqlite3.Error) -> int:
    return (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF
