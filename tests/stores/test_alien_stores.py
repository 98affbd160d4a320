"""A file that somebody else made may do more than keep what is written to it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from store_parts import Closing

from sopilot.messages.errors import StoreCorrupt
from sopilot.stores.open import open_store
from sopilot.stores.sqlite import SQLiteStore

ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r"
ALIEN = {
    "a view without an end": ["ALTER TABLE heads RENAME TO h", f"CREATE VIEW heads AS {ENDLESS}"],
    "the same in capitals": ["ALTER TABLE heads RENAME TO h", f"CREATE VIEW HEADS AS {ENDLESS}"],
    "a trigger": [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN "
        "DELETE FROM events WHERE place = new.place; END"
    ],
}


async def made(store: SQLiteStore, *statements: str) -> Path:
    await store.migrate()
    await store.close()
    connection = sqlite3.connect(store.path, isolation_level=None)
    for one in statements:
        connection.execute(one)
    connection.close()
    return store.path


@pytest.mark.parametrize("statements", ALIEN.values(), ids=ALIEN.keys())
@pytest.mark.parametrize("reading", [True, False])
async def test_what_changes_or_invents_what_is_kept_is_no_store(
    file_store: SQLiteStore, statements: list[str], reading: bool, closing: Closing
) -> None:
    path = await made(file_store, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="which sopilot never does"):
        await closing(open_store(f"sqlite:{path}", reading=reading)).sessions()
    assert path.read_bytes() == before


async def test_a_view_of_ones_own_is_welcome(file_store: SQLiteStore) -> None:
    await made(file_store, "CREATE VIEW report AS SELECT id FROM sessions")
    assert await file_store.sessions() == []


async def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StoreCorrupt, match="isn't a file"):
        await open_store(f"sqlite:{pipe}", reading=True).sessions()
