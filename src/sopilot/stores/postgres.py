"""Sessions in PostgreSQL (extra ``postgres``): shared by several machines.

Connections to PostgreSQL that come back, and the store's tables in their own schema.

The register of actions and the log of sessions in PostgreSQL.

Sessions and appends in PostgreSQL, many at a time: one round trip, one flush.

All rows of a PostgreSQL store, for copies of it.

What waits in PostgreSQL: states, calls without an outcome, decisions that were left.

Rows of PostgreSQL as values, and back.
"""

from __future__ import annotations

import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    LeaseLost,
    SessionExists,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
    TraceError,
    UnknownSession,
    UserMistake,
    mistake,
)
from sopilot.records.actions import ActionRow
from sopilot.records.log import NO_ACTIONS, LogEntry, SealedHead, SealFile
from sopilot.records.selection import Wanted
from sopilot.records.store import Append, Batch, Lease, NewSession, SessionRecord
from sopilot.stores.group_commit import Gathered, given
from sopilot.stores.postgres_pool import ConnectionPool
from sopilot.stores.rows import digests_of, filters, read_seal, record_of, unsettled_of, value_of
from sopilot.trace.chain import Head, SealedEvent, decode_line, genesis
from sopilot.trace.signing import SignedHead, signed_head_from_json
from sopilot.values.json import JSON, Fields, canonical, spell

if TYPE_CHECKING:
    from psycopg import AsyncConnection


SCHEMA_VERSION = 4


READABLE_FROM = 2
"""Schema 2 only adds tables, but who does not keep the register up would leave actions out."""


TABLES = (
    "meta", "programs", "sessions", "events", "payloads", "signatures", "actions", "log", "seals",
    "decisions",
)  # fmt: skip


# Documents are bytea: text cannot hold the NUL character that JSON strings may.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE {programs} (sha256 text PRIMARY KEY, artifact bytea NOT NULL)",
        "CREATE TABLE {sessions} ("
        " number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " id text NOT NULL UNIQUE,"
        " created_at double precision NOT NULL, updated_at double precision NOT NULL,"
        " metadata bytea NOT NULL, summary bytea NOT NULL,"
        " head_seq bigint NOT NULL, head_hash text NOT NULL,"
        " owner text NOT NULL, token bigint NOT NULL, lease_expires_at double precision NOT NULL)",
        "CREATE TABLE {events} (session bigint NOT NULL REFERENCES {sessions} (number),"
        " seq bigint NOT NULL, line bytea NOT NULL, PRIMARY KEY (session, seq))",
        "CREATE TABLE {payloads} (session bigint NOT NULL REFERENCES {sessions} (number),"
        " ref text NOT NULL, value bytea NOT NULL, PRIMARY KEY (session, ref))",
        "CREATE TABLE {signatures} (session bigint NOT NULL REFERENCES {sessions} (number),"
        " seq bigint NOT NULL, key text NOT NULL, line bytea NOT NULL,"
        " PRIMARY KEY (session, seq, key))",
    ),
    (
        "CREATE TABLE {actions} (session bigint NOT NULL REFERENCES {sessions} (number),"
        " call text NOT NULL, at double precision NOT NULL, action text NOT NULL,"
        " outcome text NOT NULL, grade text NOT NULL, expires_at double precision,"
        " arguments text NOT NULL, rest text NOT NULL, PRIMARY KEY (session, call))",
        "CREATE TABLE {log} (number bigint PRIMARY KEY, at double precision NOT NULL,"
        " session text NOT NULL, seq bigint NOT NULL, hash text NOT NULL, actions text NOT NULL)",
        "CREATE TABLE {seals} (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " line text NOT NULL)",
        "INSERT INTO {meta} SELECT 'register_due', count(*) FROM {sessions}",
    ),
    (
        "CREATE TABLE {decisions} (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " session bigint NOT NULL REFERENCES {sessions} (number), at double precision NOT NULL,"
        " line bytea NOT NULL, taken boolean NOT NULL DEFAULT false)",
        "CREATE INDEX decisions_left ON {decisions} (session) WHERE NOT taken",
    ),
    # What may be left open, for whoever sweeps. A column of its own: an index over the summary
    # itself would be written with every append, this one where a call begins and ends.
    (
        "ALTER TABLE {sessions} ADD COLUMN unsettled boolean GENERATED ALWAYS AS ("
        ' position(\'"status":"unknown"\'::bytea in summary) > 0'
        " OR (position('\"open\":[]'::bytea in summary) = 0"
        " AND (position('\"open\":'::bytea in summary) > 0"
        ' OR position(\'"status":"running"\'::bytea in summary) > 0))) STORED',
        "CREATE INDEX sessions_unsettled ON {sessions} (number) WHERE unsettled",
    ),
)
"""Entry n brings a schema from version n to n + 1."""


STORED = "ALTER TABLE {sessions} SET (fillfactor = 70)"
"""Every append writes a session's row anew. With room for it on the same page no index changes,
and the old row's place is used again: without, a thousand sessions of forty events each had taken
45 MB of that table, with it 4. Nothing depends on it, so it is no version of its own."""


_MIGRATION_LOCK = 0x736F7069


_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


_ROLLED_BACK = ("40", "54")
"""How the codes begin with which the server says that it took a transaction back, or that what
one statement holds is more than it can keep: others are not concerned."""


_NOBODY_KNOWS = "40003"


OURS = (
    # A server that acknowledges before it is durable would break the store's promise.
    "SET synchronous_commit = on",
    # One statement is one transaction, and its row locks keep writers apart.
    "SET default_transaction_isolation = 'read committed'",
    # Functions of others are not ours, however well their arguments fit.
    "SET search_path = pg_catalog, pg_temp",
    # Times are digested to the last digit, and what is no value is written as NULL.
    "SET extra_float_digits = 1",
    "SET array_nulls = on",
    "SET standard_conforming_strings = on",
)
"""What must hold on a connection, whatever was set for the server, the database or the role."""


_GONE_AFTER = {
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
"""A host that vanished says nothing: its connections are given up within half a minute. A
connection string that says otherwise is right."""


_ENCODINGS = ("UTF8", "SQL_ASCII")
"""Of databases that keep every character: the second keeps bytes, and is sent UTF-8."""


_ALIEN = (
    "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname = ANY(%s) AND (c.relkind NOT IN ('r', 'p')"
    " OR c.relrowsecurity"
    " OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)"
    " OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)) LIMIT 1"
)


_CURES = {
    "25006": "; this is a standby, or the role may only read: name the server that is written to",
    "42501": "; `sopilot store migrate` by the tables' owner says who may: --runtime to run "
    "sessions, --keeper to delete as well",
    "42704": "; make it first: CREATE ROLE",
}
"""By SQLSTATE: read only, insufficient privilege, and what is granted to nobody."""


class StatementRefused(StoreUnavailable):
    """The server is there and says that nothing was written."""


class PostgresServer:
    """``pool_size`` is how many connections there are at most, for all who use the store; one is
    waited for ``wait`` seconds. Who is only ``reading`` leaves a database as it is."""

    def __init__(
        self,
        dsn: str,
        *,
        schema: str,
        wait: float,
        pool_size: int = 10,
        reading: bool = False,
    ) -> None:
        if not _NAME.fullmatch(schema):
            raise UserMistake(f"`{schema}` cannot name a schema: use letters, digits and _")
        if pool_size < 1:
            raise UserMistake("a pool has one connection at least")
        _psycopg()  # whoever has not got it is told at once
        self._dsn = dsn
        self._schema = schema
        self._wait = wait
        self._names = {table: f"{schema}.{table}" for table in TABLES}
        self._statements: dict[str, bytes] = {}
        self._known: WeakKeyDictionary[AsyncConnection, set[str]] = WeakKeyDictionary()
        self._checked = False
        self._reading = reading
        self.pool = ConnectionPool(self._connect, size=pool_size, wait_seconds=wait)

    def sql(self, text: str) -> bytes:
        """The statement with its table names filled in. Values never go this way."""
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = text.format(**self._names).encode()
        return statement

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """Every statement is a transaction of its own, and one round trip."""
        psycopg = _psycopg()
        try:
            async with self.pool.connection() as connection:
                yield connection
        except psycopg.Error as problem:
            said, code = _first_line(problem), problem.sqlstate or ""
            lost = isinstance(problem, psycopg.OperationalError | psycopg.InterfaceError)
            if lost and (code == _NOBODY_KNOWS or not code.startswith(_ROLLED_BACK)):
                raise StoreUnavailable(f"PostgreSQL is not available: {said}") from problem
            raise StatementRefused(f"PostgreSQL refused: {said}{_CURES.get(code, '')}") from problem
        except UnicodeEncodeError as problem:
            raise StatementRefused(f"this cannot be written as UTF-8: {problem}") from problem

    def known_programs(self, db: AsyncConnection) -> set[str]:
        """Hashes that this connection has stored: a database that was put back to an earlier
        day is another connection."""
        return self._known.setdefault(db, set())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Committed when the block ends."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def close(self) -> None:
        self.pool.close()

    async def migrate(self) -> int:
        """Brings the tables up to this release, whoever may; the schema they have then."""
        async with self.connection() as connection:
            await self._migrate(connection)
        return SCHEMA_VERSION

    async def grant(
        self,
        *,
        runtime: Sequence[str] = (),
        auditors: Sequence[str] = (),
        keepers: Sequence[str] = (),
    ) -> None:
        """What each kind of role may do, and no more than that from now on: serve and write, read,
        or throw away as well. Whoever owns the tables may do everything."""
        psycopg = _psycopg()
        wanted = [
            *((role, "SELECT, INSERT, UPDATE") for role in runtime),
            *((role, "SELECT") for role in auditors),
            *((role, "SELECT, INSERT, UPDATE, DELETE") for role in keepers),
        ]
        tables = f"ALL TABLES IN SCHEMA {self._schema}"
        async with self.transaction() as connection:
            cursor = await connection.execute(
                "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = %s", (self._schema,)
            )
            owners = {row[0] for row in await cursor.fetchall()}
            names = {role: psycopg.sql.Identifier(role).as_string() for role, _ in wanted}
            for statement in (
                *(f"REVOKE ALL ON {tables} FROM {names[one]}" for one in names.keys() - owners),
                *(f"GRANT USAGE ON SCHEMA {self._schema} TO {one}" for one in names.values()),
                *(f"GRANT {rights} ON {tables} TO {names[role]}" for role, rights in wanted),
            ):
                await connection.execute(statement.encode())

    async def _connect(self) -> AsyncConnection:
        psycopg = _psycopg()
        said = psycopg.conninfo.conninfo_to_dict(self._dsn)
        connection: AsyncConnection = await psycopg.AsyncConnection.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=max(1, round(self._wait)),
            client_encoding="utf8",
            **{name: value for name, value in _GONE_AFTER.items() if name not in said},
        )
        ready = False
        try:
            await connection.execute("; ".join(OURS).encode())
            if not self._checked:
                await self._check(connection)
                self._checked = True
            ready = True
        finally:
            if not ready:
                connection.pgconn.finish()
        return connection

    async def _check(self, connection: AsyncConnection) -> None:
        """What is up to date is only looked at: whoever runs sessions need not be able to make
        tables. What is not is made, by a role that may."""
        psycopg = _psycopg()
        version = -1
        if not self._reading:
            _require_every_character(connection)
        await self._require_plain(connection)
        try:
            version = await self._version(connection)
            if version < SCHEMA_VERSION and self._reading:
                raise self._only_read(version)
            if version < SCHEMA_VERSION:
                await self._migrate(connection)
        except psycopg.errors.InsufficientPrivilege as problem:
            state = "cannot be read" if version < 0 else f"are of schema {version}"
            raise UserMistake(
                [
                    Diagnostic(
                        "store-not-migrated",
                        f"the tables of this store {state}, this release needs schema "
                        f"{SCHEMA_VERSION}, and this role may not change that: "
                        f"{_first_line(problem)}",
                        help="`sopilot store migrate` with the role that owns them; "
                        "--runtime, --auditor and --keeper name who may use them",
                    )
                ]
            ) from None

    async def _require_plain(self, connection: AsyncConnection) -> None:
        """Before anything of it is read: a view in a table's place may do whatever it likes, as
        whoever looks at it."""
        cursor = await connection.execute(_ALIEN, (self._schema, list(TABLES)))
        found = await cursor.fetchone()
        if found is not None:
            raise StoreCorrupt(
                f"the schema `{self._schema}` of this database does more than keep what is "
                f"written to it: `{found[0]}` is no plain table, or has a trigger, a rule or row "
                "security, and no release of ours made it; remove that, or restore a copy"
            )

    def _only_read(self, version: int) -> UserMistake:
        if not version:
            message = f"there is no store of sessions in this database (schema `{self._schema}`)"
            cure = "name another database; the first run makes one, and `sopilot store migrate`"
        else:
            message = f"this store has schema {version}, and this release reads {SCHEMA_VERSION}"
            cure = "`sopilot store migrate` renews it"
        return mistake("no-store", f"{message}; nothing was written", help=cure)

    async def _version(self, connection: AsyncConnection) -> int:
        psycopg = _psycopg()
        try:
            cursor = await connection.execute(self.sql("SELECT name, value FROM {meta}"))
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return 0
        meta: dict[str, int] = dict(await cursor.fetchall())
        version = int(meta.get("schema", 0))
        if version > SCHEMA_VERSION and meta.get("readable_from", version) > SCHEMA_VERSION:
            raise StoreTooNew(
                [
                    Diagnostic(
                        "store-too-new",
                        f"this store has schema {version}; "
                        f"this release works up to {SCHEMA_VERSION}",
                        help="use the release that wrote it, or a later one",
                    )
                ]
            )
        return version

    async def _migrate(self, connection: AsyncConnection) -> None:
        async with connection.transaction():
            # Several processes may meet a new database at once.
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
            await connection.execute(
                self.sql("CREATE TABLE IF NOT EXISTS {meta} (name text PRIMARY KEY, value bigint)")
            )
            version = await self._version(connection)
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    await connection.execute(self.sql(statement))
            await connection.execute(self.sql(STORED))
            if version >= SCHEMA_VERSION:
                return
            for name, value in (("schema", SCHEMA_VERSION), ("readable_from", READABLE_FROM)):
                await connection.execute(
                    self.sql(
                        "INSERT INTO {meta} VALUES (%s, %s)"
                        " ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
                    ),
                    (name, value),
                )


def _require_every_character(connection: AsyncConnection) -> None:
    encoding = connection.info.parameter_status("server_encoding") or "UTF8"
    if encoding not in _ENCODINGS:
        raise mistake(
            "store-encoding",
            f"this database keeps texts as {encoding}, which has no place for every character; "
            "nothing was written",
            help="CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0; what is in this one is "
            "moved by `sopilot store backup` and `sopilot store restore`",
        )


def _psycopg() -> Any:
    """The module, imported on use."""
    try:
        import psycopg
        import psycopg.conninfo
        import psycopg.sql
    except ModuleNotFoundError:
        raise UserMistake("PostgreSQL needs `psycopg`: pip install 'sopilot[postgres]'") from None
    return psycopg


def _first_line(problem: Exception) -> str:
    return str(problem).strip().split("\n")[0]


_BATCH = 1000


_OF = "session IN (SELECT number FROM {sessions} WHERE id = ANY(%s))"


_ACTIONS = "session, call, at, action, outcome, grade, expires_at, arguments, rest"


_READ: Mapping[str, tuple[str, str]] = {
    "meta": ("SELECT name, value FROM {meta} WHERE name = 'register_due'", ""),
    "programs": ("SELECT sha256, artifact FROM {programs}", ""),
    "sessions": (
        "SELECT number, id, created_at, updated_at, metadata, summary, head_seq, head_hash, token"
        " FROM {sessions}",
        "id = ANY(%s)",
    ),
    "events": ("SELECT session, seq, line FROM {events}", _OF),
    "payloads": ("SELECT session, ref, value FROM {payloads}", _OF),
    "signatures": ("SELECT session, seq, key, line FROM {signatures}", _OF),
    "actions": (f"SELECT {_ACTIONS} FROM {{actions}}", _OF),
    "decisions": ("SELECT number, session, at, line, taken::int FROM {decisions}", _OF),
    "log": ("SELECT number, at, session, seq, hash, actions FROM {log} ORDER BY number", ""),
    "seals": ("SELECT number, line FROM {seals} ORDER BY number", ""),
}


_OWN = "OVERRIDING SYSTEM VALUE"


_FILL: Mapping[str, str] = {
    "meta": "INSERT INTO {meta} VALUES (%s,%s) ON CONFLICT (name) DO UPDATE"
    " SET value = EXCLUDED.value",
    "programs": "INSERT INTO {programs} VALUES (%s,%s) ON CONFLICT DO NOTHING",
    "sessions": "INSERT INTO {sessions} (number, id, created_at, updated_at, metadata, summary,"
    " head_seq, head_hash, token, owner, lease_expires_at)"
    f" {_OWN} VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s + 1,'',0)",
    "events": "INSERT INTO {events} VALUES (%s,%s,%s)",
    "payloads": "INSERT INTO {payloads} VALUES (%s,%s,%s)",
    "signatures": "INSERT INTO {signatures} VALUES (%s,%s,%s,%s)",
    "actions": f"INSERT INTO {{actions}} ({_ACTIONS}) VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s)",
    "decisions": "INSERT INTO {decisions} (number, session, at, line, taken)"
    f" {_OWN} VALUES (%s,%s,%s,%s,%s::int::boolean)",
    "log": "INSERT INTO {log} VALUES (%s,%s,%s,%s,%s,%s)",
    "seals": f"INSERT INTO {{seals}} (number, line) {_OWN} VALUES (%s,%s)",
}


_BYTES: Mapping[str, frozenset[int]] = {
    "programs": frozenset({1}), "sessions": frozenset({4, 5}), "events": frozenset({2}),
    "payloads": frozenset({2}), "signatures": frozenset({3}), "decisions": frozenset({3}),
}  # fmt: skip
"""Columns that are text elsewhere."""


_NUMBERED = ("sessions", "seals", "decisions")


class PostgresCopies:
    _server: PostgresServer

    @asynccontextmanager
    async def read_rows(self) -> AsyncIterator[Any]:
        async with self._server.transaction() as db:
            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield lambda table, only: self._read(db, table, only)

    async def _read(
        self, db: AsyncConnection, table: str, only: Collection[str] | None
    ) -> AsyncIterator[list[Sequence[Any]]]:
        query, own = _READ[table]
        some = only is not None and bool(own)
        spelled = _BYTES.get(table, frozenset())
        async with db.cursor(name=f"copy_{table}") as cursor:
            await cursor.execute(
                self._server.sql(f"{query} WHERE {own}" if some else query),
                (list(only or ()),) if some else (),
            )
            while rows := await cursor.fetchmany(_BATCH):
                yield [
                    [bytes(one).decode() if at in spelled else one for at, one in enumerate(row)]
                    for row in rows
                ]

    @asynccontextmanager
    async def fill_rows(self) -> AsyncIterator[Any]:
        async with self._server.transaction() as db, db.cursor() as cursor:

            async def fill(table: str, rows: list[Sequence[Any]]) -> None:
                spelled = _BYTES.get(table, frozenset())
                await cursor.executemany(
                    self._server.sql(_FILL[table]),
                    [
                        [one.encode() if at in spelled else one for at, one in enumerate(row)]
                        for row in rows
                    ],
                )

            yield fill
            for table in _NUMBERED:
                name = self._server.sql(f"{{{table}}}").decode()
                await db.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'number'),"
                    f" coalesce(max(number), 0) + 1, false) FROM {name}".encode()
                )

    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        found: dict[str, tuple[int, int | None]] = {}
        async with self._server.transaction() as db:
            for table in _READ:
                name = self._server.sql(f"{{{table}}}").decode()
                query = f"SELECT count(*), pg_total_relation_size('{name}') FROM {name}"
                row = await (await db.execute(query.encode())).fetchone()
                found[table] = (int(row[0]), int(row[1])) if row else (0, 0)
        total = sum(size or 0 for _, size in found.values())
        return {**found, "total": (found["sessions"][0], total)}


ON_CONFLICT = (
    "ON CONFLICT (session, call) DO UPDATE SET at = EXCLUDED.at,"
    " action = EXCLUDED.action, outcome = EXCLUDED.outcome,"
    " grade = EXCLUDED.grade, expires_at = EXCLUDED.expires_at,"
    " arguments = EXCLUDED.arguments, rest = EXCLUDED.rest"
)


_UPSERT = f"INSERT INTO {{actions}} %s {ON_CONFLICT}"


def upsert_of(row: ActionRow, source: str) -> str:
    """The statement that writes this row for the session whose ``number`` is in ``source``."""
    return _UPSERT % f"SELECT number, {_marks(row)} FROM {source}"


async def add_actions(
    server: PostgresServer, db: AsyncConnection, number: int, rows: Sequence[ActionRow]
) -> None:
    for row in rows:
        await db.execute(server.sql(_UPSERT % f"VALUES (%s,{_marks(row)})"), (number, *row))


def _marks(row: ActionRow) -> str:
    return ",".join(["%s"] * len(row))


async def add_entries(
    server: PostgresServer,
    db: AsyncConnection,
    at: float,
    stood: Sequence[tuple[Head, str]],
) -> None:
    await db.execute(server.sql("LOCK TABLE {log} IN EXCLUSIVE MODE"))
    cursor = await db.execute(server.sql("SELECT coalesce(max(number) + 1, 0) FROM {log}"))
    row = await cursor.fetchone()
    first = int(row[0]) if row else 0
    async with db.cursor() as writing:
        await writing.executemany(
            server.sql("INSERT INTO {log} VALUES (%s,%s,%s,%s,%s,%s)"),
            [(first + n, at, *head, actions) for n, (head, actions) in enumerate(stood)],
        )


class PostgresRecords:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    async def actions(self, wanted: Wanted) -> list[tuple[str, ActionRow]]:
        where, values = filters(wanted, "%s")
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT {sessions}.id, call, at, action, outcome, grade, expires_at,"
                    " arguments, rest FROM {actions} JOIN {sessions} ON session = number"
                    f"{where} ORDER BY at DESC, session DESC, call"
                ),
                values,
            )
            rows = await cursor.fetchall()
        return [(row[0], ActionRow(*row[1:])) for row in rows]

    async def count_actions(self) -> int:
        return await self._count("SELECT count(*) FROM {actions}")

    async def count_sessions(self) -> int:
        return await self._count("SELECT count(*) FROM {sessions} WHERE left(id, 8) <> 'journal.'")

    async def _count(self, query: str) -> int:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._server.sql(query))
            row = await cursor.fetchone()
        return int(row[0]) if row else 0

    async def replace_actions(self, head: Head, rows: Sequence[ActionRow]) -> bool:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT number FROM {sessions} WHERE id = %s AND head_hash = %s FOR UPDATE"
                ),
                (head.session_id, head.hash),
            )
            found = await cursor.fetchone()
            if found is None:
                return False
            await db.execute(self._server.sql("DELETE FROM {actions} WHERE session = %s"), found)
            await add_actions(self._server, db, found[0], rows)
        return True

    async def rebuild_is_due(self) -> bool:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql("SELECT value FROM {meta} WHERE name = 'register_due'")
            )
            row = await cursor.fetchone()
        return row is not None and row[0] > 0

    async def rebuilt(self) -> None:
        async with self._server.transaction() as db:
            await db.execute(
                self._server.sql("UPDATE {meta} SET value = 0 WHERE name = 'register_due'")
            )

    async def heads(self) -> list[Head]:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql("SELECT id, head_seq, head_hash FROM {sessions} ORDER BY number"),
                binary=True,
            )
            rows = await cursor.fetchall()
        return [Head(*row) for row in rows]

    async def digests(self) -> dict[str, str]:
        async with self._server.transaction() as db:
            return await self._digests(db)

    async def _digests(self, db: AsyncConnection) -> dict[str, str]:
        """Joined and ordered here: sessions have long rows, which the server would sort with the
        others, and texts it compares by the rules of a language."""
        cursor = await db.execute(
            self._server.sql("SELECT number, id FROM {sessions}"), binary=True
        )
        ids: dict[int, str] = dict(await cursor.fetchall())
        cursor = await db.execute(
            self._server.sql(
                "SELECT session, call, at, action, outcome, grade, expires_at, arguments, rest"
                " FROM {actions}"
            ),
            binary=True,
        )
        found = digests_of(await cursor.fetchall())
        return {ids.get(number, ""): digest for number, digest in found.items()}

    async def log(self, *, after: int = -1) -> list[LogEntry]:
        async with self._server.transaction() as db:
            cursor = await db.execute(
                self._server.sql(
                    "SELECT number, at, session, seq, hash, actions FROM {log}"
                    " WHERE number > %s ORDER BY number"
                ),
                (after,),
                binary=True,
            )
            rows = await cursor.fetchall()
        return list(map(LogEntry._make, rows))

    async def log_heads(self, session_ids: Sequence[str], *, at: float) -> None:
        async with self._server.transaction() as db:
            # Head and rows of a session change together: its row is locked until both are read.
            cursor = await db.execute(
                self._server.sql(
                    "SELECT id, head_seq, head_hash FROM {sessions} WHERE id = ANY(%s)"
                    " ORDER BY number FOR SHARE"
                ),
                (list(session_ids),),
            )
            heads = [Head(*row) for row in await cursor.fetchall()]
            digests = await self._digests(db)
            stood = [(head, digests.get(head.session_id, NO_ACTIONS)) for head in heads]
            await add_entries(self._server, db, at, stood)

    async def add_seal(self, seal: SealedHead) -> None:
        async with self._server.transaction() as db:
            await db.execute(
                self._server.sql("INSERT INTO {seals} (line) VALUES (%s)"),
                (spell(seal.as_json()),),
            )

    async def seals(self) -> list[SealedHead]:
        async with self._server.transaction() as db:
            cursor = await db.execute(self._server.sql("SELECT line FROM {seals} ORDER BY number"))
            rows = await cursor.fetchall()
        return [read_seal(line) for (line,) in rows]


RECORD = (
    "SELECT id, created_at, updated_at, metadata, summary, head_seq, head_hash, owner,"
    " lease_expires_at FROM {sessions}"
)


def array_of(values: Iterable[str | bytes | float | None]) -> str:
    """An array as PostgreSQL writes one, for a statement that says of what. The driver would
    make it, too: it asks every item for its type, and looks through each for what to escape."""
    return "{" + ",".join([_ITEMS.get(type(one), _text)(one) for one in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _text(value: object) -> str:
    return _quoted(str(value))


_ITEMS: dict[type, Callable[[Any], str]] = {
    str: _quoted,
    bytes: lambda value: f'"\\\\x{value.hex()}"',
    int: repr,
    float: repr,
    bool: repr,
    NoneType: lambda value: "NULL",
}


def text_of(value: JSON) -> bytes:
    return canonical(value)


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


_ACTIONS_POSTGRES_MANY = {
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
    f" acted AS (INSERT INTO {{actions}} {_taken(_ACTIONS_POSTGRES_MANY)} {ON_CONFLICT})"
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
        *_columns(actions, _ACTIONS_POSTGRES_MANY),
    ]


def _columns(rows: Sequence[Iterable[Any]], names: dict[str, str]) -> list[str]:
    return [array_of(column) for column in zip(*rows, strict=True)] or [array_of(())] * len(names)


_UNSETTLED = (
    RECORD + " WHERE unsettled AND (position(%s in summary) > 0 OR lease_expires_at <= %s)"
    " ORDER BY number DESC"
)


class PostgresWaiting:
    _server: PostgresServer

    async def states(self) -> dict[str, int]:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "SELECT coalesce(substring(encode(summary, 'escape')"
                    " from '\"status\":\"([a-z]+)\"'), 'new'), count(*) FROM {sessions} GROUP BY 1"
                )
            )
            return dict(await cursor.fetchall())

    async def unsettled(self, *, now: float) -> list[SessionRecord]:
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(_UNSETTLED), (b'"status":"unknown"', now))
            return unsettled_of(await cursor.fetchall(), now=now)

    async def free(self, processes: Sequence[str]) -> int:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "UPDATE {sessions} SET owner = '', token = token + 1, lease_expires_at = 0"
                    " WHERE owner <> '' AND substring(owner from '^(.+):[^:]*$') = ANY(%s)"
                ),
                (list(processes),),
            )
            return cursor.rowcount

    async def leave(self, session_id: str, decision: Mapping[str, JSON], *, at: float) -> None:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "INSERT INTO {decisions} (session, at, line)"
                    " SELECT number, %s, %s FROM {sessions} WHERE id = %s"
                ),
                (at, text_of(dict(decision)), session_id),
            )
            if cursor.rowcount != 1:
                raise UnknownSession(session_id)

    async def left(self, session_id: str) -> list[tuple[int, JSON]]:
        rows = await self._of_session(
            session_id,
            "SELECT {decisions}.number, line FROM {decisions}"
            " WHERE session = {sessions}.number AND NOT taken ORDER BY {decisions}.number",
        )
        return [(number, value_of(line)) for number, line in rows]

    async def took(self, session_id: str, numbers: Sequence[int]) -> None:
        async with self._server.connection() as db:
            await db.execute(
                self._sql("UPDATE {decisions} SET taken = true WHERE number = ANY(%s)"),
                (list(numbers),),
            )

    def _sql(self, text: str) -> bytes:
        return self._server.sql(text)

    async def _of_session(
        self, session_id: str, query: str, values: tuple[object, ...] = ()
    ) -> list[Any]:
        """Rows of one session, in one round trip: a row of nothing where there are none."""
        columns = query.removeprefix("SELECT ").partition(" FROM ")[0]
        text = (
            f"SELECT found.* FROM {{sessions}} LEFT JOIN LATERAL ({query}) AS found ON true"
            " WHERE id = %s"
        )
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(text), (*values, session_id))
            rows = await cursor.fetchall()
        if not rows:
            raise UnknownSession(session_id)
        return [] if rows[0] == (None,) * len(columns.split(",")) else rows


_AT_ONCE = 4
"""Appends that are under way by themselves; more of them go together."""


_TAKEN = "23505"
"""PostgreSQL's code for a key that is there already."""


_DELETED = ("events", "payloads", "decisions", "signatures")
"""Tables that pruning deletes from."""


_APPEND = (
    "WITH head AS (UPDATE {sessions} SET head_seq = %s, head_hash = %s, updated_at = %s,"
    " summary = %s, lease_expires_at = %s"
    " WHERE id = %s AND token = %s AND head_hash = %s RETURNING number)"
)


_WITH_EVENTS = (
    ", written AS (INSERT INTO {events} SELECT number, new.seq, new.line"
    " FROM head, unnest(%s::bigint[], %s::bytea[]) AS new (seq, line))"
)


_WITH_PAYLOADS = (
    ", kept AS (INSERT INTO {payloads} SELECT number, new.ref, new.value"
    " FROM head, unnest(%s::text[], %s::bytea[]) AS new (ref, value) ON CONFLICT DO NOTHING)"
)


_WITH_PROGRAMS = (
    ", known AS (INSERT INTO {programs} SELECT new.sha256, new.artifact"
    " FROM head, unnest(%s::text[], %s::bytea[]) AS new (sha256, artifact)"
    " ON CONFLICT DO NOTHING)"
)


class PostgresStore(PostgresWaiting, PostgresCopies):
    """At most ``pool_size`` connections, opened on use and again after a loss, for any number of
    threads and event loops. Who is only ``reading`` makes no tables and renews none.

    Text columns hold canonical JSON: ``jsonb`` would rewrite numbers and refuses
    what hashes were taken over. Events are ordered by (session, seq); nothing
    depends on a sequence, whose order is not commit order. An append is one
    statement, and so one round trip and one transaction.
    """

    external_head: Callable[[], Awaitable[SealFile]] | None = None

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "sopilot",
        connect_seconds: float = 10.0,
        pool_size: int = 10,
        reading: bool = False,
    ) -> None:
        self._server = PostgresServer(
            dsn, schema=schema, wait=connect_seconds, pool_size=pool_size, reading=reading
        )
        self.records = PostgresRecords(self._server)
        self._creates: Gathered[Create, Lease] = Gathered(
            self._create, self._create_many, apart=StatementRefused, at_once=1
        )
        self._reads: Gathered[str, SessionRecord] = Gathered(
            self._record, self._record_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._acquires: Gathered[Acquire, Lease] = Gathered(
            self._acquire, self._acquire_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._releases: Gathered[Lease, None] = Gathered(
            self._release, self._release_many, apart=StatementRefused, at_once=_AT_ONCE
        )
        self._appends: Gathered[Append, Lease] = Gathered(
            self._append, self._append_many, apart=StatementRefused, at_once=_AT_ONCE
        )

    async def migrate(self) -> int:
        """Makes or renews the tables, with a role that may; the schema that they have then."""
        return await self._server.migrate()

    async def grant(
        self,
        *,
        runtime: Sequence[str] = (),
        auditors: Sequence[str] = (),
        keepers: Sequence[str] = (),
    ) -> None:
        """Roles that run sessions, that only read, and that may throw away as well."""
        await self._server.grant(runtime=runtime, auditors=auditors, keepers=keepers)

    async def create(
        self, session: NewSession, *, owner: str, now: float, lease_seconds: float
    ) -> Lease:
        return await self._creates.write(Create(session, owner, now, now + lease_seconds))

    async def _create(self, one: Create) -> Lease:
        try:
            (made,) = await self._create_many([one])
            return made
        except StatementRefused as problem:
            if getattr(problem.__cause__, "sqlstate", None) == _TAKEN:
                raise SessionExists(one.session.id) from None
            raise

    async def _create_many(self, items: Sequence[Create]) -> list[Lease]:
        # Sent in one go: who numbers the log does so while nobody else can.
        async with self._server.connection() as db:
            known = self._server.known_programs(db)
            sessions, entries = created(items, known)
            async with db.pipeline(), db.transaction():
                await db.execute(self._sql(CREATE_MANY), sessions)
                await db.execute(self._sql("LOCK TABLE {log} IN EXCLUSIVE MODE"))
                await db.execute(self._sql(LOG_MANY), entries)
            known.update(*(one.session.programs for one in items))
        return [Lease(one.session.id, one.owner, 1, one.expires) for one in items]

    async def acquire(
        self,
        session_id: str,
        *,
        owner: str,
        now: float,
        lease_seconds: float,
        take_over: bool = False,
    ) -> Lease:
        wanted = Acquire(session_id, owner, now, now + lease_seconds, take_over)
        return await self._acquires.write(wanted)

    async def _acquire(self, one: Acquire) -> Lease:
        return given(*await self._acquire_many([one]))

    async def _acquire_many(self, items: Sequence[Acquire]) -> list[Lease | Exception]:
        # Of several who want one session the first has it, whatever they call themselves.
        first = {one.session_id: one for one in reversed(items)}
        async with self._server.connection() as db:
            wanted = acquired([first[name] for name in sorted(first)])
            cursor = await db.execute(self._sql(ACQUIRE_MANY), wanted)
            tokens: dict[str, int] = dict(await cursor.fetchall())
            return [
                Lease(one.session_id, one.owner, tokens[one.session_id], one.expires)
                if one.session_id in tokens and one is first[one.session_id]
                else await self._held(db, one)
                for one in items
            ]

    async def _held(self, db: AsyncConnection, one: Acquire) -> LeaseHeld | UnknownSession:
        cursor = await db.execute(
            self._sql("SELECT owner, lease_expires_at FROM {sessions} WHERE id = %s"),
            (one.session_id,),
        )
        row = await cursor.fetchone()
        if row is None:
            return UnknownSession(one.session_id)
        return LeaseHeld(one.session_id, row[0], row[1], one.now)

    async def renew(self, lease: Lease, *, now: float, lease_seconds: float) -> Lease:
        expires = now + lease_seconds
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    "UPDATE {sessions} SET lease_expires_at = %s WHERE id = %s AND token = %s"
                ),
                (expires, lease.session_id, lease.token),
            )
            if cursor.rowcount != 1:
                raise LeaseLost(lease.session_id)
        return lease._replace(expires_at=expires)

    async def release(self, lease: Lease) -> None:
        await self._releases.write(lease)

    async def _release(self, lease: Lease) -> None:
        await self._release_many([lease])

    async def _release_many(self, leases: Sequence[Lease]) -> list[Exception | None]:
        async with self._server.connection() as db:
            await db.execute(self._sql(RELEASE_MANY), released(sorted(leases)))
        return [None] * len(leases)

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        return await self._appends.write(Append(lease, batch, now, now + lease_seconds))

    async def _append_many(self, items: Sequence[Append]) -> list[Lease | Exception]:
        if any(one.batch.programs for one in items):
            raise StatementRefused("programs come by themselves")
        async with self._server.connection() as db:
            cursor = await db.execute(self._sql(APPEND_MANY), appended(items))
            written = {row[0] for row in await cursor.fetchall()}
            return [
                one.lease._replace(expires_at=one.expires)
                if one.lease.session_id in written
                else await self._refusal(db, one.lease, one.batch)
                for one in items
            ]

    async def _append(self, one: Append) -> Lease:
        async with self._server.connection() as db:
            await self._write(db, one)
        return one.lease._replace(expires_at=one.expires)

    async def _write(self, db: AsyncConnection, one: Append) -> None:
        lease, batch, now, expires = one
        head = batch.head
        parts, rest = _rest_of(batch)
        # The row lock of the update is what keeps two writers apart.
        values = [
            head.seq, head.hash, now, text_of(batch.summary), expires,
            lease.session_id, lease.token, batch.expected.hash, *rest,
        ]  # fmt: skip
        cursor = await db.execute(self._sql(f"{_APPEND}{parts} SELECT number FROM head"), values)
        if await cursor.fetchone() is None:
            raise await self._refusal(db, lease, batch)

    async def events(self, session_id: str, *, after: int = -1) -> list[SealedEvent]:
        rows = await self._of_session(
            session_id,
            "SELECT line FROM {events} WHERE session = number AND seq > %s ORDER BY seq",
            (after,),
        )
        try:
            return [decode_line(bytes(line).decode()) for (line,) in rows]
        except (TraceError, UnicodeDecodeError) as problem:
            raise StoreCorrupt(f"an event of session {session_id} is damaged: {problem}") from None

    async def payloads(self, session_id: str) -> dict[str, JSON]:
        rows = await self._of_session(
            session_id, "SELECT ref, value FROM {payloads} WHERE session = number"
        )
        return {ref: value_of(value) for ref, value in rows}

    async def forget(self, session_id: str, refs: Sequence[str]) -> int:
        forgotten = self._sql("DELETE FROM {payloads} WHERE session = %s AND ref = ANY(%s)")
        async with self._server.transaction() as db:
            number = await self._number(db, session_id)
            return (await db.execute(forgotten, (number, list(refs)))).rowcount

    async def require_deletion(self) -> None:
        async with self._server.connection() as db:
            for table in _DELETED:
                name = self._sql(f"{{{table}}}").decode()
                cursor = await db.execute(
                    "SELECT has_table_privilege(%s, 'DELETE'), current_user", (name,)
                )
                row = await cursor.fetchone()
                if row is None or not row[0]:
                    who = row[1] if row else "this role"
                    raise StatementRefused(
                        f"`{who}` has no right to delete from {name}; nothing was recorded or "
                        "deleted. Use a role of `sopilot store migrate --keeper`"
                    )

    async def shred(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self._delete(metadata, recorded, ("payloads", "decisions"))

    async def prune(self, metadata: Mapping[str, Fields], recorded: Append | None = None) -> None:
        await self._delete(metadata, recorded, _DELETED)

    async def _delete(
        self, metadata: Mapping[str, Fields], recorded: Append | None, tables: Sequence[str]
    ) -> None:
        async with self._server.transaction() as db:
            if recorded is not None:
                await self._write(db, recorded)
            for session_id, kept in metadata.items():
                number = await self._number(db, session_id)
                for table in tables:
                    deleted = self._sql(f"DELETE FROM {{{table}}} WHERE session = %s")
                    await db.execute(deleted, (number,))
                changed = self._sql("UPDATE {sessions} SET metadata = %s WHERE number = %s")
                await db.execute(changed, (text_of(dict(kept)), number))

    async def record(self, session_id: str) -> SessionRecord:
        if "\0" in session_id:
            raise UnknownSession(session_id)  # no text of PostgreSQL has that character
        return await self._reads.write(session_id)

    async def _record(self, session_id: str) -> SessionRecord:
        return given(*await self._record_many([session_id]))

    async def _record_many(self, ids: Sequence[str]) -> list[SessionRecord | Exception]:
        async with self._server.connection() as db:
            wanted = array_of(dict.fromkeys(ids))
            cursor = await db.execute(
                self._sql(RECORD + " WHERE id = ANY(%s::text[])"), (wanted,), binary=True
            )
            rows = {row[0]: row for row in await cursor.fetchall()}
        return [_record_or_problem(one, rows.get(one)) for one in ids]

    async def sessions(self, *, limit: int = 100) -> list[SessionRecord]:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql(
                    RECORD + " WHERE left(id, 8) <> 'journal.' ORDER BY number DESC LIMIT %s"
                ),
                (limit,),
            )
            rows = await cursor.fetchall()
        return [record_of(row) for row in rows]

    async def program(self, sha256: str) -> str:
        async with self._server.connection() as db:
            cursor = await db.execute(
                self._sql("SELECT artifact FROM {programs} WHERE sha256 = %s"), (sha256,)
            )
            row = await cursor.fetchone()
        if row is None:
            raise StoreCorrupt(f"program {sha256[:12]} is not in this store")
        return bytes(row[0]).decode()

    async def add_signature(self, signed: SignedHead) -> None:
        async with self._server.transaction() as db:
            number = await self._number(db, signed.head.session_id)
            await db.execute(
                self._sql(
                    "INSERT INTO {signatures} VALUES (%s,%s,%s,%s)"
                    " ON CONFLICT (session, seq, key) DO UPDATE SET line = EXCLUDED.line"
                ),
                (number, signed.head.seq, signed.key, text_of(signed.as_json())),
            )

    async def signatures(self, session_id: str) -> list[SignedHead]:
        rows = await self._of_session(
            session_id, "SELECT line FROM {signatures} WHERE session = number ORDER BY seq, key"
        )
        try:
            return [signed_head_from_json(value_of(line)) for (line,) in rows]
        except TraceError as problem:
            raise StoreCorrupt(f"a signature of session {session_id} is damaged") from problem

    async def close(self) -> None:
        await self._server.close()

    # --- parts --------------------------------------------------------------------

    async def _number(self, db: AsyncConnection, session_id: str) -> int:
        cursor = await db.execute(
            self._sql("SELECT number FROM {sessions} WHERE id = %s"), (session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return int(row[0])

    async def _refusal(
        self, db: AsyncConnection, lease: Lease, batch: Batch
    ) -> LeaseLost | Conflict | UnknownSession:
        cursor = await db.execute(
            self._sql("SELECT token, head_seq FROM {sessions} WHERE id = %s"), (lease.session_id,)
        )
        row = await cursor.fetchone()
        if row is None:
            return UnknownSession(lease.session_id)
        if row[0] != lease.token:
            return LeaseLost(lease.session_id)
        return Conflict(lease.session_id, batch.expected.seq, row[1])


def _record_or_problem(session_id: str, row: Sequence[Any] | None) -> SessionRecord | Exception:
    try:
        return UnknownSession(session_id) if row is None else record_of(row)
    except StoreCorrupt as problem:
        return problem


def _rest_of(batch: Batch) -> tuple[str, list[Any]]:
    """What follows the session's row (``head``) in the same statement, and its values."""
    parts = [_WITH_EVENTS]
    values: list[Any] = [
        array_of(sealed.event.seq for sealed in batch.events),
        array_of(line.encode("utf-8") for line in batch.encoded()),
    ]
    if batch.payloads:
        parts.append(_WITH_PAYLOADS)
        values += [array_of(batch.payloads), array_of(map(text_of, batch.payloads.values()))]
    if batch.programs:
        parts.append(_WITH_PROGRAMS)
        values += [array_of(batch.programs), array_of(map(str.encode, batch.programs.values()))]
    for number, row in enumerate(batch.actions):
        parts.append(f", action_{number} AS ({upsert_of(row, 'head')})")
        values += row
    return "".join(parts), values
