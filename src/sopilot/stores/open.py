"""Open a store by its address."""

from __future__ import annotations

import os
from pathlib import Path

from sopilot.messages.errors import mistake
from sopilot.records.store import Store


def data_folder() -> Path:
    """`SOPILOT_HOME`, else the user's data folder for this program."""
    home = os.environ.get("SOPILOT_HOME")
    if home:
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sopilot"


_KEYS_VARIABLE = "SOPILOT_KEYS"
_HEAD_VARIABLE = "SOPILOT_HEAD"
_POSTGRES = ("postgres", "postgresql")


def names_store(text: str) -> bool:
    """Whether the text names a store, and not a file or an address."""
    kind, colon, _ = text.partition(":")
    return bool(colon) and kind in ("sqlite", *_POSTGRES)


def open_store(spec: str | None = None, *, reading: bool = False) -> Store:
    """The store that ``spec`` names; it connects on first use. ``reading`` makes no tables in a
    database that has none; a file is never made by reading. If the environment names a folder of
    keys, contents are encrypted with them. If it names an external head, a store that is behind it
    is fenced."""
    store, keys = _named(spec, reading), os.environ.get(_KEYS_VARIABLE)
    if (head := os.environ.get(_HEAD_VARIABLE)) and not reading:
        from sopilot.stores.sealed_heads import ExternalSeals

        store.external_head = ExternalSeals(head)
    if not keys:
        return store
    from sopilot.stores.encrypted import KeyFolder, encrypted

    return encrypted(store, KeyFolder(Path(keys).expanduser()))


def _named(spec: str | None, reading: bool) -> Store:
    if not spec:
        from sopilot.stores.sqlite import SQLiteStore

        return SQLiteStore(data_folder() / "sessions.db")
    kind, _, where = spec.partition(":")
    if kind == "sqlite" and where:
        from sopilot.stores.sqlite import SQLiteStore

        return SQLiteStore(Path(where).expanduser())
    if kind in _POSTGRES and where:
        from sopilot.stores.postgres import PostgresStore

        # A whole URL is as good as a prefix and a connection string.
        dsn = f"postgresql:{where}" if where.startswith("//") else where
        return PostgresStore(dsn, reading=reading)
    raise mistake(
        "unknown-store",
        f"`{spec}` isn't the address of a store",
        help="write sqlite:PATH or postgres:DSN",
    )
