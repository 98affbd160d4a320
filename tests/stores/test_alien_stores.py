"""A file that somebody else made may do more than keep what is written to it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from store_parts import Opened

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


async def made(folder: Path, *statements: str) -> Path:
    path = folder / "s.db"
    store = SQLiteStore(path)
    await store.migrate()
    await store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    for one in statements:
        connection.execute(one)
    connection.close()
    return path


@pytest.mark.parametrize("statements", ALIEN.values(), ids=ALIEN.keys())
@pytest.mark.parametrize("reading", [True, False])
async def test_what_changes_or_invents_what_is_kept_is_no_store(
    tmp_path: Path, statements: list[str], reading: bool, opened: Opened
) -> None:
    path = await made(tmp_path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="no release of sopilot"):
        await opened(open_store(f"sqlite:{path}", reading=reading)).sessions()
    assert path.read_bytes() == before


async def test_a_view_of_ones_own_is_welcome(tmp_path: Path, opened: Opened) -> None:
    path = await made(tmp_path, "CREATE VIEW report AS SELECT id FROM sessions")
    assert await opened(SQLiteStore(path)).sessions() == []


async def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StoreCorrupt, match="isn't a file"):
        await open_store(f"sqlite:{pipe}", reading=True).sessions()
