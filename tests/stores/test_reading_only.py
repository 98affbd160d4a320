"""Reading leaves nothing behind, and what is not a store is never written to."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.cli.main import sopilot
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.stores.sqlite import SQLiteStore


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "simulators"
    }


def call(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.execute("INSERT INTO bookmarks VALUES ('x')")
    connection.close()


def words(path: Path) -> None:
    path.write_text("root:x:0:0\n" * 100)


@pytest.mark.parametrize("make", [foreign, words])
@pytest.mark.parametrize("arguments", [("sessions", "list"), ("run", "bank"), ("audit", "x")])
def test_a_file_that_is_something_else_stays_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], arguments: tuple[str, ...]
) -> None:
    make(tmp_path / "theirs.db")
    before = tree(tmp_path)
    done = call(*arguments, "--store", f"sqlite:{tmp_path}/theirs.db")
    assert isinstance(done.exception, StoreCorrupt)
    assert "name another file" in str(done.exception)
    assert tree(tmp_path) == before


def test_looking_makes_no_folder_no_file_and_no_lock(tmp_path: Path) -> None:
    place = tmp_path / "not" / "there" / "s.db"
    assert call("sessions", "list", "--store", f"sqlite:{place}").output == "no sessions\n"
    assert "there is no session" in str(call("audit", "x", "--store", f"sqlite:{place}").exception)
    assert list(tmp_path.iterdir()) == []


def test_reading_a_store_leaves_it_to_the_byte(tmp_path: Path) -> None:
    async def made() -> str:
        store = SQLiteStore(tmp_path / "s.db")
        session = await opened(store, model="m")
        await session.release()
        await store.close()
        return session.id

    session = asyncio.run(made())
    (tmp_path / "s.db.lock").unlink()
    before = tree(tmp_path)
    where = f"sqlite:{tmp_path}/s.db"
    listed = json.loads(call("sessions", "list", "--json", "--store", where).stdout)["sessions"]
    assert [one["id"] for one in listed] == [session]
    assert call("trace", "export", session, "--store", where).exit_code == 0
    assert tree(tmp_path) == before


async def test_what_one_object_reads_before_another_writes(tmp_path: Path) -> None:
    reader, writer = SQLiteStore(tmp_path / "s.db"), SQLiteStore(tmp_path / "s.db")
    assert await reader.sessions() == []
    session = await opened(writer)
    assert [one.id for one in await reader.sessions()] == [session.id]
    await session.user_said("more")
    assert len(await reader.events(session.id)) == len(session.events)
    await session.release()
    await reader.close()
    await writer.close()


def test_exports_and_pages_are_their_owners_alone(tmp_path: Path) -> None:
    assert call("run", "bank").exit_code == 0
    session = json.loads(call("sessions", "list", "--json").stdout)["sessions"][0]["id"]
    page, trace = tmp_path / "page.html", tmp_path / "t.jsonl"
    page.touch(0o644)
    assert call("audit", session, "--html", str(page)).exit_code == 0
    assert call("trace", "export", session, "-o", str(trace)).exit_code == 0
    assert [path.stat().st_mode & 0o777 for path in (page, trace)] == [0o600, 0o600]


READERS = (
    ("sessions", "list"),
    (
        "records",
        "actions",
    ),
    ("audit", "some-session"),
    ("approvals", "list", "some-session"),
    ("trace", "export", "some-session"),
    ("resume", "some-session"),
)


def test_reading_makes_nothing_in_a_database_of_something_else(postgres: PostgresHere) -> None:
    import psycopg

    def names() -> list[tuple[str]]:
        with psycopg.connect(postgres.dsn, autocommit=True) as db:
            found: list[tuple[str]] = db.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname = 'sopilot'"
            ).fetchall()
            return found

    assert names() == []
    for command in READERS:
        done = call(*command, "--store", f"postgres:{postgres.dsn}")
        assert isinstance(done.exception, UserMistake), command
        assert "this database has no session store" in str(done.exception)
        assert "nothing was written" in str(done.exception)
    assert names() == []
