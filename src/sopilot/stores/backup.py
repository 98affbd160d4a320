"""Back up, restore and move a store row by row, and measure its size.

A back-up is a SQLite store, whatever it is of; so it can be read, verified and audited as it is,
and restored into either kind. Contents that are under keys stay so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import cast

from sopilot.messages.errors import mistake
from sopilot.protocols import Clock, SystemClock
from sopilot.records.store import Store
from sopilot.session.fence import fence_store
from sopilot.stores.schema import TABLES
from sopilot.stores.sql import Row, SqlStore, Transaction, own_rows
from sopilot.stores.sqlite import SQLiteStore

_BESIDE_SESSIONS = frozenset({"meta", "log", "seals"})
"""Tables that belong to no session: no part of a copy of some sessions."""


def _database(store: Store) -> SqlStore:
    database = getattr(store, "without_keys", store)
    if not isinstance(database, SqlStore):
        raise mistake("not-copied", "a store in memory can't be copied", help="use a file")
    return database


async def copy_rows(
    source: Store, target: Store, session_ids: Collection[str] | None = None
) -> dict[str, int]:
    """Copy all sessions, or those of ``session_ids``, at one moment; return the rows per table.
    Every lease of before is worth nothing in the copy."""
    if await target.records.heads():
        raise mistake(
            "store-not-empty",
            "this store isn't empty: the copy would be mixed with its sessions",
            help="name a new file, or an empty database",
        )
    counts = dict.fromkeys(TABLES, 0)
    database = _database(target)
    async with _database(source).read(snapshot=True) as origin, database.write() as copy:
        numbers = await _numbers(origin, session_ids)
        for table, definition in TABLES.items():
            if table == "meta" or (numbers is not None and table in _BESIDE_SESSIONS):
                continue
            marks = ", ".join("?" * len(definition.columns))
            insert = f"INSERT INTO {{{table}}} VALUES ({marks})"
            if table == "programs":
                insert += " ON CONFLICT DO NOTHING"
            async for rows in _rows(origin, table, numbers):
                counts[table] += len(rows)
                await copy.execute_many(insert, rows)
        await copy.execute("UPDATE {heads} SET owner = '', lease_expires_at = 0, token = token + 1")
        await database.count_on(copy)
    return counts


async def _numbers(db: Transaction, session_ids: Collection[str] | None) -> list[int] | None:
    if session_ids is None:
        return None
    numbers = []
    for session_id in session_ids:
        rows = await db.rows("SELECT number FROM {sessions} WHERE id = ?", (session_id,))
        numbers += [row[0] for row in rows]
    return sorted(numbers)


async def _rows(
    db: Transaction, table: str, numbers: Sequence[int] | None
) -> AsyncIterator[list[Row]]:
    query = f"SELECT {', '.join(TABLES[table].columns)} FROM {{{table}}}"
    if numbers is None or table == "programs":
        async for rows in db.batches(f"{query} ORDER BY 1"):
            yield rows
        return
    for number in numbers:
        where, values = own_rows(table, number)
        async for rows in db.batches(f"{query} WHERE {where}", values):
            yield rows


async def back_up(
    store: Store, file: Path, session_ids: Collection[str] | None = None
) -> dict[str, int]:
    """Write a new file that only its owner can read, whole or not at all."""
    if file.exists():
        raise mistake("file-exists", f"{file} already exists", help="name a new file")
    folder = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.absolute().parent))
    try:
        copy = SQLiteStore(folder / file.name)
        try:
            await copy.migrate()
            counts = await copy_rows(store, cast(Store, copy), session_ids)
        finally:
            await copy.close()
        os.replace(folder / file.name, file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts


async def restore(store: Store, file: Path, *, clock: Clock | None = None) -> dict[str, int]:
    """Fill an empty store, fenced: the back-up doesn't know what its sessions did afterwards.

    The fence is set in a copy of the file, so that no moment shows the rows without it."""
    folder = Path(tempfile.mkdtemp(prefix=f".{file.name}."))
    source = SQLiteStore(file)
    copy = SQLiteStore(folder / file.name)
    try:
        await copy.migrate()
        await copy_rows(cast(Store, source), cast(Store, copy))
        why = f"restored from {file.name}"
        await fence_store(cast(Store, copy), why, clock=clock or SystemClock())
        await store.migrate()
        return await copy_rows(cast(Store, copy), store)
    finally:
        await source.close()
        await copy.close()
        shutil.rmtree(folder, ignore_errors=True)


async def sizes(store: Store) -> dict[str, tuple[int, int | None]]:
    """Table → rows and bytes, where they are known; ``total``: sessions and bytes."""
    return await _database(store).sizes()


def size_lines(result: dict[str, tuple[int, int | None]]) -> list[str]:
    return [
        f"{name:<11}{rows:>12}  {'' if size is None else f'{size / 1e6:.1f} MB'}".rstrip()
        for name, (rows, size) in result.items()
    ]
