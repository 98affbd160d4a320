"""A server, a database or a role that was set up otherwise, or by somebody who means harm."""

from __future__ import annotations

import asyncio
import itertools
import random
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from store_parts import Closing, Writer, opening

from counter_desk import COUNTER, ERRANDS, CountingTools, walk
from postgres_here import PostgresHere
from sopilot.messages.errors import StoreCorrupt, StoreUnavailable, UnknownSession, UserMistake
from sopilot.records.actions import ActionRow
from sopilot.records.selection import Wanted
from sopilot.session.opening import open_session
from sopilot.stores.postgres import PostgresStore

_numbers = itertools.count()
AT = 1794836000.1234567
NOBODYS = "CREATE TABLE public.done (who text)"
DOES = "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.done VALUES (current_user); "


@contextmanager
def database(server: PostgresHere, how: str = "") -> Iterator[str]:
    """One of its own, which goes with its files: a server flushes them all when it stops."""
    name = f"attacked_{next(_numbers)}"
    run(server.dsn, f"CREATE DATABASE {name} {how}")
    try:
        yield make_conninfo(server.dsn, dbname=name)
    finally:
        run(server.dsn, f"DROP DATABASE {name} WITH (FORCE)")


def schema() -> str:
    return f"attacked_{next(_numbers)}"


def run(dsn: str, *statements: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as db:
        for one in statements:
            cursor = db.execute(one.encode())
        return cursor.fetchall() if cursor.description else []


async def conversation(store: PostgresStore, call_id: str) -> int:
    tools = CountingTools()
    session = await open_session(store, COUNTER, tools=tools, handbook="€ \U0001f600")
    await walk(session, "transfer", stop_at_action="transfer")
    await session.call_tool("transfer", ERRANDS["transfer"], call_id)
    await session.release()
    assert await store.events(session.id) == list(session.events)
    return tools.made("transfer")


async def conversations(dsn: str, call_ids: Sequence[str], schema: str = "sopilot") -> list[int]:
    store = PostgresStore(dsn, schema=schema)
    try:
        return await asyncio.gather(*(conversation(store, one) for one in call_ids))
    finally:
        await store.close()


@pytest.mark.parametrize(
    "setting",
    [
        "client_encoding = 'LATIN1'",
        "client_encoding = 'SQL_ASCII'",
        "default_transaction_isolation = 'serializable'",
        "array_nulls = off",
        "standard_conforming_strings = off",
        "search_path = 'nowhere'",
    ],
)
def test_what_is_set_for_a_role_changes_nothing(postgres: PostgresHere, setting: str) -> None:
    name = schema()
    run(postgres.dsn, f"CREATE ROLE {name} LOGIN SUPERUSER", f"ALTER ROLE {name} SET {setting}")
    dsn = make_conninfo(postgres.dsn, user=name)
    made = asyncio.run(conversations(dsn, [f"c{number}" for number in range(12)], name))
    assert made == [1] * 12
    assert asyncio.run(conversations(dsn, ["c"], name)) == [1]


async def test_times_are_read_as_they_were_written(
    postgres: PostgresHere, closing: Closing
) -> None:
    """They are digested: rounded, every row of the register would count as altered."""
    dsn = postgres.dsn + "&options=-c%20extra_float_digits%3D-10"
    store = closing(PostgresStore(dsn, schema="t"))
    row = ActionRow('"c"', AT, '"pay"', "carried out", "", AT + 1, "{}", "{}")
    await Writer.begin(store, opening("s", 1, actions=[row]))
    assert [one for _, one in await store.records.actions(Wanted())] == [row]


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP"])
def test_a_database_without_every_character_is_refused(
    postgres: PostgresHere, encoding: str
) -> None:
    how = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with database(postgres, how) as dsn:
        with pytest.raises(UserMistake, match=f"stores text as {encoding}"):
            asyncio.run(conversations(dsn, ["c"]))
        assert run(dsn, "SELECT nspname FROM pg_namespace WHERE nspname = 'sopilot'") == []


def test_a_database_of_bytes_is_as_good(postgres: PostgresHere) -> None:
    how = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with database(postgres, how) as dsn:
        for _ in range(2):
            assert asyncio.run(conversations(dsn, ["c"])) == [1]


async def test_what_one_writes_too_long_is_nobody_elses_matter(
    server_store: PostgresStore,
) -> None:
    """An index holds rows of 2,704 bytes. One statement writes for many."""
    chance = random.Random(1)
    long = "".join(chance.choices(string.ascii_letters, k=4000))

    async def one(name: str, call: str) -> str:
        writer = await Writer.begin(server_store, opening(name))
        row = ActionRow(f'"{call}"', 1.0, '"pay"', "carried out", "", None, "{}", "{}")
        try:
            for number in range(4):
                await writer.append(number, actions=[row])
        except StoreUnavailable as problem:
            return str(problem)
        return "written"

    ended = await asyncio.gather(*(one(f"s{n}", long if n == 7 else "c") for n in range(40)))
    assert "PostgreSQL refused: index row" in ended.pop(7)
    assert set(ended) == {"written"}


def test_a_call_with_an_endless_id_is_made_once(postgres: PostgresHere) -> None:
    chance = random.Random(2)
    ids = ["".join(chance.choices(string.ascii_letters, k=size)) for size in (3000, 20_000)]
    made = asyncio.run(conversations(postgres.dsn, [*ids, "a\0b", "\ud800", "", "c"], schema()))
    assert made == [1] * 6


async def test_an_id_with_a_sign_that_no_text_has_is_unknown(server_store: PostgresStore) -> None:
    with pytest.raises(UnknownSession):
        await server_store.record("a\0b")
    with pytest.raises(StoreUnavailable, match="cannot be written as UTF-8"):
        await server_store.record("\ud800")


def test_functions_of_others_are_not_called(postgres: PostgresHere) -> None:
    """Theirs fit better than PostgreSQL's own, and would run as the tables' owner."""
    lock = f"FUNCTION public.pg_advisory_xact_lock(int) RETURNS void {DOES} END $$"
    with database(postgres) as dsn:
        run(dsn, NOBODYS, f"CREATE {lock}")
        assert asyncio.run(conversations(dsn, ["c"])) == [1]
        assert run(dsn, "SELECT who FROM public.done") == []


def test_a_view_in_a_tables_place_is_not_looked_at(postgres: PostgresHere) -> None:
    with database(postgres) as dsn:
        run(
            dsn, NOBODYS, "CREATE SCHEMA sopilot",
            f"CREATE FUNCTION public.three() RETURNS bigint {DOES} RETURN 3; END $$",
            "CREATE VIEW sopilot.meta AS SELECT 'schema'::text AS name, public.three() AS value",
        )  # fmt: skip
        for reading in (True, False):
            store = PostgresStore(dsn, reading=reading)
            with pytest.raises(StoreCorrupt, match="`meta` isn't a plain table"):
                asyncio.run(store.sessions())
        assert run(dsn, "SELECT who FROM public.done") == []


LOSES = "RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"


@pytest.mark.parametrize(
    "statements",
    [
        [
            f"CREATE FUNCTION HERE.lose() {LOSES}",
            "CREATE TRIGGER lose BEFORE INSERT ON HERE.events FOR EACH ROW"
            " EXECUTE FUNCTION HERE.lose()",
        ],
        ["CREATE RULE other AS ON INSERT TO HERE.events DO ALSO DELETE FROM HERE.events"],
        ["ALTER TABLE HERE.events ENABLE ROW LEVEL SECURITY"],
    ],
    ids=["trigger", "rule", "row security"],
)
def test_a_table_that_does_not_keep_what_is_written_is_none(
    postgres: PostgresHere, statements: list[str]
) -> None:
    dsn, here = postgres.dsn, schema()
    assert asyncio.run(conversations(dsn, ["c"], here)) == [1]
    run(dsn, f"CREATE VIEW {here}.report AS SELECT id FROM {here}.sessions")
    assert asyncio.run(conversations(dsn, ["c"], here)) == [1]
    run(dsn, *(one.replace("HERE", here) for one in statements))
    with pytest.raises(StoreCorrupt, match="`events` isn't a plain table"):
        asyncio.run(conversations(dsn, ["c"], here))


async def test_a_role_may_do_what_it_was_named_for_last(
    postgres: PostgresHere, closing: Closing
) -> None:
    name = schema()
    run(postgres.dsn, f"CREATE ROLE {name} LOGIN")
    store = closing(PostgresStore(postgres.dsn, schema=name))
    await store.migrate()

    def may() -> list[tuple[object, ...]]:
        return run(
            postgres.dsn,
            "SELECT privilege_type FROM information_schema.table_privileges"
            f" WHERE grantee = '{name}' AND table_name = 'events' ORDER BY 1",
        )

    await store.grant(keepers=[name])
    assert may() == [("DELETE",), ("INSERT",), ("SELECT",), ("UPDATE",)]
    await store.grant(auditors=[name])
    assert may() == [("SELECT",)]
    await store.grant(runtime=[name], auditors=[name])
    assert may() == [("INSERT",), ("SELECT",), ("UPDATE",)]


async def test_whoever_owns_the_tables_keeps_its_rights(
    postgres: PostgresHere, closing: Closing
) -> None:
    name = schema()
    run(postgres.dsn, f"CREATE ROLE {name} LOGIN", f"GRANT CREATE ON DATABASE postgres TO {name}")
    store = closing(PostgresStore(make_conninfo(postgres.dsn, user=name), schema=name))
    await store.migrate()
    await store.grant(auditors=[name])
    deletes = f"SELECT has_table_privilege('{name}', '{name}.events', 'DELETE')"
    assert run(postgres.dsn, deletes) == [(True,)]


async def test_a_host_that_vanished_is_given_up(postgres: PostgresHere, closing: Closing) -> None:
    for more, idle in (("", "10"), ("&keepalives_idle=77", "77")):
        store = closing(PostgresStore(postgres.dsn + more, schema="vanished"))
        async with store.pool.connection() as db:
            found = db.info.get_parameters()
        assert found["keepalives_idle"] == idle
        assert found["tcp_user_timeout"] == "20000"
