"""A store as a whole, row by row: backed up, restored, moved to another kind, weighed.

A back-up is a SQLite store, whatever it is of; so it can be read, verified and audited as it is,
and restored into either kind. Contents that are under keys stay so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, cast

from sopilot.messages.errors import mistake
from sopilot.protocols import Clock, SystemClock
from sopilot.records.store import Store
from sopilot.session.fence import fence_store
from sopilot.stores.sqlite import SQLiteStore

_Row = Sequence[Any]


_Rows = Callable[[str, Collection[str] | None], AsyncIterator[list[_Row]]]


_Fill = Callable[[str, list[_Row]], Any]


_TABLES = (
    "meta", "programs", "sessions", "events", "payloads", "signatures", "actions", "decisions",
    "log", "seals",
)  # fmt: skip
"""In the order in which they are filled. Both kinds of store give and take the same columns."""


_WHOLE_STORE = frozenset({"meta", "log", "seals"})
"""What belongs to no session: no part of a copy of some of them."""


class _Copyable(Protocol):
    """What a store can do beside running sessions."""

    def read_rows(self) -> AbstractAsyncContextManager[_Rows]:
        """All of it as it stood at one moment, whoever writes meanwhile."""
        ...

    def fill_rows(self) -> AbstractAsyncContextManager[_Fill]:
        """All of it or nothing. Every lease of before is worth nothing."""
        ...

    async def sizes(self) -> dict[str, tuple[int, int | None]]:
        """Table → rows and bytes, where they are known; ``total``: sessions and bytes."""
        ...


async def copy_rows(
    source: Store, target: Store, session_ids: Collection[str] | None = None
) -> dict[str, int]:
    """Rows of each table. ``session_ids``: those sessions alone."""
    if await target.records.heads():
        raise mistake(
            "store-not-empty",
            "there are sessions in this store: a copy would be mixed with them",
            help="name a new file, or an empty database",
        )
    counts = dict.fromkeys(_TABLES, 0)
    async with (
        cast(_Copyable, source).read_rows() as read,
        cast(_Copyable, target).fill_rows() as fill,
    ):
        for table in _TABLES:
            if session_ids is not None and table in _WHOLE_STORE:
                continue
            async for rows in read(table, session_ids):
                counts[table] += len(rows)
                await fill(table, rows)
    return counts


async def back_up(
    store: Store, file: Path, session_ids: Collection[str] | None = None
) -> dict[str, int]:
    """Into a new file of its owner alone, which is there as a whole or not at all."""
    if file.exists():
        raise mistake("file-exists", f"{file} is there already", help="name a new file")
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
    return await cast(_Copyable, store).sizes()


def size_lines(found: dict[str, tuple[int, int | None]]) -> list[str]:
    return [
        f"{name:<11}{rows:>12}  {'' if size is None else f'{size / 1e6:.1f} MB'}".rstrip()
        for name, (rows, size) in found.items()
    ]
