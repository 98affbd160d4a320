"""Connections to PostgreSQL that come back, and the store's tables in their own schema."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sopilot.adapters.postgres_pool import ConnectionPool
from sopilot.language.diagnostics import Diagnostic, UserMistake, mistake
from sopilot.runtime.session import StoreCorrupt, StoreTooNew, StoreUnavailable

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
