"""One SQLite file: transactions that wait without blocking, and errors that say what to do.

Sessions in one SQLite file: the embedded default.

The register of actions and the log of sessions in a SQLite file.

All rows of a SQLite store, for copies of it.

One flush for what many sessions write to a SQLite file in the same moment.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    RunEnded,
    SessionExists,
    StoreCorrupt,
    StoreUnavailable,
    TraceError,
    UnknownSession,
)
from sopilot.records.actions import ActionRow
from sopilot.records.log import NO_ACTIONS, LogEntry, SealedHead, SealFile, digest_of
from sopilot.records.selection import Wanted
from sopilot.records.store import Append, Batch, Lease, NewSession, SessionRecord
from sopilot.stores.group_commit import PerLoop, settle
from sopilot.stores.rows import digests_of, filters, read_seal, record_of, unsettled_of, value_of
from sopilot.stores.schema import (
    EVENTS_PER_SESSION,
    OWN_TABLES,
    SCHEMA_VERSION,
    TABLES,
    UNSETTLED,
    migrate,
    require_readable,
    written_schema,
)
from sopilot.trace.chain import Head, SealedEvent, decode_line, genesis
from sopilot.trace.signing import SignedHead, signed_head_from_json
from sopilot.values.json import JSON, Fields, made, spell

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


Item = TypeVar("Item")


_FLUSHING = ""


@dataclass(slots=True)
class _Moment(Generic[Item]):
    """Of one event loop: who has written since it last came round, and who waits for that."""

    writer: str | None = None
    waiting: list[tuple[str, Item, asyncio.Future[None]]] = field(default_factory=list)
    flushing: asyncio.Task[None] | None = None


class Together(Generic[Item]):
    """A commit keeps the event loop until the disk has it. So the first to write does so at once,
    and so does who writes alone; those who come before the loop has gone round share the next
    transaction. Each is refused by itself, and acknowledged when all of it is durable."""

    def __init__(
        self, file: SQLiteFile, write: Callable[[sqlite3.Connection, Item], object]
    ) -> None:
        self._file = file
        self._write = write
        self._moments: PerLoop[_Moment[Item]] = PerLoop(_Moment)

    async def add(self, writer: str, item: Item) -> None:
        loop = asyncio.get_running_loop()
        moment = self._moments.of(loop)
        if moment.writer is not None and moment.writer != writer:
            done = loop.create_future()
            moment.waiting.append((writer, item, done))
            try:
                await done
            finally:
                del done  # else what it raises would hold it, and be held by it
            return
        if moment.writer is None:
            moment.writer = writer
            loop.call_soon(self._come_round, loop, moment)
        async with self._file.writing() as db:
            self._write(db, item)

    def _come_round(self, loop: asyncio.AbstractEventLoop, moment: _Moment[Item]) -> None:
        moment.writer = None
        if moment.waiting:
            moment.writer = _FLUSHING
            moment.flushing = loop.create_task(self._flush(loop, moment))

    async def _flush(self, loop: asyncio.AbstractEventLoop, moment: _Moment[Item]) -> None:
        together, moment.waiting = moment.waiting, []
        answers: list[BaseException | None] = []
        try:
            async with self._file.writing() as db:
                for _, item, _ in together:
                    answers.append(self._refusal(db, item))
        except BaseException as problem:  # whatever it is: nobody waits for ever
            answers = [problem] * len(together)
        for (_, _, done), answer in zip(together, answers, strict=True):
            settle(done, answer)
        # They go on before this: what they write next waits for it, unless one was alone.
        if len(together) == 1:
            moment.writer = together[0][0]
        loop.call_soon(self._come_round, loop, moment)

    def _refusal(self, db: sqlite3.Connection, item: Item) -> Exception | None:
        db.execute("SAVEPOINT one")
        try:
            self._write(db, item)
        except RunEnded as problem:
            db.execute("ROLLBACK TO one")
            return problem
        finally:
            db.execute("RELEASE one")
        return None


_RECORD = """SELECT id, created_at, updated_at, metadata, summary, seq, hash, owner,
    lease_expires_at FROM sessions JOIN heads ON session = number"""


# Newest first by the index, which has no other order.
_UNSETTLED = f"""{_RECORD} WHERE {UNSETTLED} AND
    (lease_expires_at <= ? OR instr(summary, '"status":"unknown"') > 0) ORDER BY session DESC"""


_ITS = "session = (SELECT number FROM sessions WHERE id = ?)"


class SQLiteStore(SQLiteCopies):
    """``synchronous`` FULL survives a power cut after every append; NORMAL survives crashes
    of the process, and does not wait for the disk."""

    external_head: Callable[[], Awaitable[SealFile]] | None = None

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        busy_seconds: float = 5.0,
    ) -> None:
        self._file = SQLiteFile(Path(path), synchronous=synchronous, busy_seconds=busy_seconds)
        self.records = SQLiteRecords(self._file)
        self._appends = Together(self._file, self._append)
        self._numbers: dict[str, int] = {}
        """Of sessions that this store appends to: a number never changes."""

    @property
    def path(self) -> Path:
        return self._file.path

    async def migrate(self) -> int:
        """Brings the file up to this release; the schema that it has then."""
        await self._file.connection()
        return SCHEMA_VERSION

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        start = genesis(session.id)
        async with self._file.writing() as db:
            _add_programs(db, session.programs)
            try:
                number = db.execute(
                    "INSERT INTO sessions (id, created_at, metadata) VALUES (?, ?, ?)",
                    (session.id, now, spell(session.metadata)),
                ).lastrowid
            except sqlite3.IntegrityError:
                raise SessionExists(session.id) from None
            db.execute(
                "INSERT INTO heads (session, seq, hash, updated_at, owner, token,"
                " lease_expires_at, summary) VALUES (?, -1, ?, ?, ?, 1, ?, '{}')",
                (number, start, now, owner, expires),
            )
            add_entry(db, now, Head(session.id, -1, start))
            lease = Lease(session.id, owner, 1, expires)
            if session.first is not None:
                self._append(db, Append(lease, session.first, now, expires))
        return lease

    async def acquire(
        self,
        session_id: str,
        *,
        owner: str,
        now: float,
        lease_seconds: float,
        take_over: bool = False,
    ) -> Lease:
        expires = now + lease_seconds
        async with self._file.writing() as db:
            row = db.execute(
                f"SELECT owner, token, lease_expires_at FROM heads WHERE {_ITS}", (session_id,)
            ).fetchone()
            if row is None:
                raise UnknownSession(session_id)
            held_by, token, until = row
            if not isinstance(token, int) or not isinstance(until, float):
                raise StoreCorrupt(f"the lease of session {session_id} is damaged")
            if held_by and until > now and not take_over:
                raise LeaseHeld(session_id, held_by, until, now)
            db.execute(
                f"UPDATE heads SET owner = ?, token = ?, lease_expires_at = ? WHERE {_ITS}",
                (owner, token + 1, expires, session_id),
            )
        return Lease(session_id, owner, token + 1, expires)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._file.writing() as db:
            changed = db.execute(
                f"UPDATE heads SET lease_expires_at = ? WHERE {_ITS} AND token = ?",
                (expires, lease.session_id, lease.token),
            ).rowcount
            if not changed:
                raise LeaseLost(lease.session_id)
        return Lease(lease.session_id, lease.owner, lease.token, expires)

    async def release(self, lease: Lease) -> None:
        self._numbers.pop(lease.session_id, None)
        async with self._file.writing() as db:
            db.execute(
                "UPDATE heads SET owner = '', token = token + 1, lease_expires_at = 0"
                f" WHERE {_ITS} AND token = ?",
                (lease.session_id, lease.token),
            )

    async def free(self, processes: Sequence[str]) -> int:
        async with self._file.writing() as db:
            return sum(
                db.execute(
                    "UPDATE heads SET owner = '', token = token + 1, lease_expires_at = 0"
                    " WHERE owner <> '' AND substr(owner, 1, length(?1)) = ?1"
                    " AND instr(substr(owner, length(?1) + 1), ':') = 0",
                    (f"{process}:",),
                ).rowcount
                for process in processes
                if process
            )

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        expires = now + lease_seconds
        await self._appends.add(lease.session_id, made(Append, (lease, batch, now, expires)))
        return made(Lease, (*lease[:3], expires))

    def _append(self, db: sqlite3.Connection, one: Append) -> None:
        lease, batch, now, expires = one
        head = batch.head
        number = self._numbers.get(lease.session_id)
        if number is None:
            number = self._numbers[lease.session_id] = _number(db, lease.session_id)
        written = db.execute(
            "UPDATE heads SET seq = ?, hash = ?, updated_at = ?, lease_expires_at = ?,"
            " summary = ? WHERE session = ? AND token = ? AND hash = ?",
            (
                head.seq,
                head.hash,
                now,
                expires,
                spell(batch.summary),
                number,
                lease.token,
                batch.expected.hash,
            ),
        ).rowcount
        if written != 1:
            raise _refusal(db, lease, batch)
        first = number * EVENTS_PER_SESSION
        for sealed, line in zip(batch.events, batch.encoded(), strict=True):
            db.execute("INSERT INTO events VALUES (?, ?)", (first + sealed.event.seq, line))
        if batch.payloads:
            db.executemany(
                "INSERT INTO payloads VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                ((number, ref, spell(value)) for ref, value in batch.payloads.items()),
            )
        if batch.programs:
            _add_programs(db, batch.programs)
        if batch.actions:
            add_actions(db, number, batch.actions)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        async with self._file.reading() as db:
            first = _number(db, session_id) * EVENTS_PER_SESSION
            rows = db.execute(
                "SELECT line FROM events WHERE place > ? AND place < ? ORDER BY place",
                (first + after, first + EVENTS_PER_SESSION),
            ).fetchall()
        try:
            return [decode_line(_whole(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT ref, value FROM payloads WHERE session = ?", (_number(db, session_id),)
            ).fetchall()
        return {ref: value_of(text) for ref, text in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        async with self._file.writing() as db:
            number = _number(db, session_id)
            return sum(
                db.execute(
                    "DELETE FROM payloads WHERE session = ? AND ref = ?", (number, ref)
                ).rowcount
                for ref in set(refs)
            )

    async def require_deletion(self) -> None:
        """Whoever may write a file may delete in it."""

    async def shred(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self._delete(metadata, recorded, ("payloads", "decisions"))

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        tables = ("payloads", "decisions", "signatures")
        await self._delete(metadata, recorded, tables, events=True)

    async def _delete(
        self,
        metadata: Mapping[str, Fields],
        recorded: Append | None,
        tables: Sequence[str],
        *,
        events: bool = False,
    ) -> None:
        async with self._file.writing() as db:
            if recorded is not None:
                self._append(db, recorded)
            for session_id, kept in metadata.items():
                number = _number(db, session_id)
                for table in tables:
                    db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
                if events:
                    first = number * EVENTS_PER_SESSION
                    last = first + EVENTS_PER_SESSION
                    db.execute("DELETE FROM events WHERE place >= ? AND place < ?", (first, last))
                db.execute(
                    "UPDATE sessions SET metadata = ? WHERE number = ?", (spell(dict(kept)), number)
                )
        await self._file.write_anew()

    async def record(self, session_id: str) -> SessionRecord:
        if self._file.opened is None and not self._file.path.exists():
            raise UnknownSession(session_id)  # asked for at every opening: no table is made for it
        async with self._file.reading() as db:
            row = db.execute(f"{_RECORD} WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return record_of(row)

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._file.reading() as db:
            rows = db.execute(
                f"{_RECORD} WHERE substr(id, 1, 8) <> 'journal.' ORDER BY number DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [record_of(row) for row in rows]

    async def states(self) -> dict[str, int]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT coalesce(json_extract(summary, '$.status'), 'new'), count(*)"
                " FROM heads GROUP BY 1"
            ).fetchall()
        return dict(rows)

    async def unsettled(self, *, now: float) -> list[SessionRecord]:
        async with self._file.reading() as db:
            rows = db.execute(_UNSETTLED, (now,)).fetchall()
        return unsettled_of(rows, now=now)

    async def leave(self, session_id: str, decision: Mapping[str, JSON], *, at: float) -> None:
        async with self._file.writing() as db:
            db.execute(
                "INSERT INTO decisions (session, at, line) VALUES (?, ?, ?)",
                (_number(db, session_id), at, spell(dict(decision))),
            )

    async def left(self, session_id: str) -> list[tuple[int, JSON]]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT number, line FROM decisions WHERE session = ? AND taken = 0"
                " ORDER BY number",
                (_number(db, session_id),),
            ).fetchall()
        return [(number, value_of(line)) for number, line in rows]

    async def took(self, session_id: str, numbers: Sequence[int]) -> None:
        async with self._file.writing() as db:
            db.executemany(
                "UPDATE decisions SET taken = 1 WHERE number = ?", [(one,) for one in numbers]
            )

    async def program(self, sha256: str) -> str:
        async with self._file.reading() as db:
            row = db.execute("SELECT artifact FROM programs WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return str(row[0])

    async def add_signature(self, signed: SignedHead) -> None:
        async with self._file.writing() as db:
            number = _number(db, signed.head.session_id)
            db.execute(
                "INSERT OR REPLACE INTO signatures VALUES (?, ?, ?, ?)",
                (number, signed.head.seq, signed.key, spell(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        async with self._file.reading() as db:
            rows = db.execute(
                "SELECT line FROM signatures WHERE session = ? ORDER BY seq, key",
                (_number(db, session_id),),
            ).fetchall()
        try:
            return [signed_head_from_json(value_of(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        self._numbers.clear()
        await self._file.close()


def _number(db: sqlite3.Connection, session_id: str) -> int:
    row = db.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    return int(row[0])


def _refusal(db: sqlite3.Connection, lease: Lease, batch: Batch) -> LeaseLost | Conflict:
    row = db.execute(f"SELECT token, seq FROM heads WHERE {_ITS}", (lease.session_id,)).fetchone()
    if row is None:
        raise UnknownSession(lease.session_id)
    if row[0] != lease.token:
        return LeaseLost(lease.session_id)
    return Conflict(lease.session_id, batch.expected.seq, row[1])


def _add_programs(db: sqlite3.Connection, programs: Mapping[str, str]) -> None:
    db.executemany("INSERT OR IGNORE INTO programs VALUES (?, ?)", programs.items())


def _whole(line: object) -> str:
    """A damaged page can hold a row without its text, whatever the schema says."""
    if not isinstance(line, str):
        raise TraceError("its line is missing")
    return line
