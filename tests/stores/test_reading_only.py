"""Reading leaves nothing behind, and what is not a store is never written to."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from store_parts import Closing

from commands import ran, run, shown
from counter_sessions import opened
from postgres_here import PostgresHere
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.stores.sqlite import SQLiteStore


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "simulators"
    }


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
    done = run(*arguments, "--store", f"sqlite:{tmp_path}/theirs.db")
    assert isinstance(done.exception, StoreCorrupt)
    assert "name another file" in str(done.exception)
    assert tree(tmp_path) == before


def test_looking_makes_no_folder_no_file_and_no_lock(tmp_path: Path) -> None:
    place = tmp_path / "not" / "there" / "s.db"
    assert run("sessions", "list", "--store", f"sqlite:{place}").output == "no sessions\n"
    assert "there is no session" in str(run("audit", "x", "--store", f"sqlite:{place}").exception)
    assert list(tmp_path.iterdir()) == []


async def test_reading_a_store_leaves_it_to_the_byte(file_store: SQLiteStore) -> None:
    session = await opened(file_store, model="m")
    await session.release()
    await file_store.close()
    folder, where = file_store.path.parent, ("--store", f"sqlite:{file_store.path}")
    (folder / "s.db.lock").unlink()
    before = tree(folder)
    listed = await asyncio.to_thread(shown, "sessions", "list", *where)
    assert [one["id"] for one in listed["sessions"]] == [session.id]
    await asyncio.to_thread(ran, "trace", "export", session.id, *where)
    assert tree(folder) == before


async def test_what_one_object_reads_before_another_writes(
    file_store: SQLiteStore, closing: Closing
) -> None:
    reader = closing(SQLiteStore(file_store.path))
    assert await reader.sessions() == []
    session = await opened(file_store)
    assert [one.id for one in await reader.sessions()] == [session.id]
    await session.user_said("more")
    assert len(await reader.events(session.id)) == len(session.events)


def test_exports_and_pages_are_their_owners_alone(tmp_path: Path) -> None:
    session = shown("run", "bank")["session"]
    page, trace = tmp_path / "page.html", tmp_path / "t.jsonl"
    page.touch(0o644)
    ran("audit", session, "--html", page)
    ran("trace", "export", session, "-o", trace)
    assert [path.stat().st_mode & 0o777 for path in (page, trace)] == [0o600, 0o600]


READERS = (
    ("sessions", "list"),
    ("records", "actions"),
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
        done = run(*command, "--store", f"postgres:{postgres.dsn}")
        assert isinstance(done.exception, UserMistake), command
        assert "this database has no session store" in str(done.exception)
        assert "nothing was written" in str(done.exception)
    assert names() == []
