"""A connection to PostgreSQL that comes back, with the store's tables in their own schema."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.runtime.session import StoreTooNew, StoreUnavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SCHEMA_VERSION = 2
READABLE_FROM = 2
"""Schema 2 only adds tables, but who does not keep the register up would leave actions out."""
TABLES = (
    "meta", "programs", "sessions", "events", "payloads", "signatures", "actions", "log", "seals",
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
)
"""Entry n brings a schema from version n to n + 1."""

_MIGRATION_LOCK = 0x736F7069
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class PostgresServer:
    def __init__(self, dsn: str, *, schema: str, connect_seconds: float) -> None:
        if not _NAME.fullmatch(schema):
            raise UserMistake(f"`{schema}` cannot name a schema: use letters, digits and _")
        self._dsn = dsn
        self._schema = schema
        self._connect_seconds = connect_seconds
        self._names = {table: f"{schema}.{table}" for table in TABLES}
        self._connection: AsyncConnection | None = None
        self._lock = asyncio.Lock()
        self._statements: dict[str, bytes] = {}

    def sql(self, text: str) -> bytes:
        """The statement with its table names filled in. Values never go this way."""
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = text.format(**self._names).encode()
        return statement

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Committed when the block ends. One at a time on this connection."""
        psycopg = _psycopg()
        async with self._lock:
            try:
                async with AsyncExitStack() as stack:
                    yield await self._begin(stack)
            except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
                await self._drop()
                raise StoreUnavailable(
                    f"PostgreSQL is not available: {_first_line(problem)}"
                ) from problem
            except psycopg.Error as problem:
                raise StoreUnavailable(f"PostgreSQL refused: {_first_line(problem)}") from problem

    async def _begin(self, stack: AsyncExitStack) -> AsyncConnection:
        """A connection that died while idle is replaced: nothing of ours was lost with it."""
        psycopg = _psycopg()
        fresh = self._connection is None
        connection = await self._connected()
        try:
            await stack.enter_async_context(connection.transaction())
        except psycopg.OperationalError:
            if fresh:
                raise
            await self._drop()
            connection = await self._connected()
            await stack.enter_async_context(connection.transaction())
        return connection

    async def close(self) -> None:
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> AsyncConnection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        psycopg = _psycopg()
        connection: AsyncConnection = await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, connect_timeout=max(1, round(self._connect_seconds))
        )
        ready = False
        try:
            # A server that acknowledges before it is durable would break the store's promise.
            await connection.execute("SET synchronous_commit = on")
            await self._migrate(connection)
            ready = True
        finally:
            if not ready:
                await connection.close()
        self._connection = connection
        return connection

    async def _migrate(self, connection: AsyncConnection) -> None:
        async with connection.transaction():
            # Several processes may meet a new database at once.
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
            await connection.execute(
                self.sql("CREATE TABLE IF NOT EXISTS {meta} (name text PRIMARY KEY, value bigint)")
            )
            cursor = await connection.execute(self.sql("SELECT name, value FROM {meta}"))
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
            if version >= SCHEMA_VERSION:
                return
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    await connection.execute(self.sql(statement))
            for name, value in (("schema", SCHEMA_VERSION), ("readable_from", READABLE_FROM)):
                await connection.execute(
                    self.sql(
                        "INSERT INTO {meta} VALUES (%s, %s)"
                        " ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
                    ),
                    (name, value),
                )


def _psycopg() -> Any:
    """The module, imported on use."""
    try:
        import psycopg
    except ModuleNotFoundError:
        raise UserMistake("PostgreSQL needs `psycopg`: pip install 'sopilot[postgres]'") from None
    return psycopg


def _first_line(problem: Exception) -> str:
    return str(problem).strip().split("\n")[0]
