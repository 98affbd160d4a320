"""Which store a command means: the only place where stores are wired."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.runtime.session import Store

Answer = TypeVar("Answer")

STORE = click.option(
    "--store",
    "store_spec",
    metavar="sqlite:PATH|postgres:DSN",
    envvar="SOPILOT_STORE",
    help="Where sessions are kept. Default: sessions.db in the user's data folder.",
)


def data_folder() -> Path:
    """`SOPILOT_HOME`, else the user's data folder for this program."""
    home = os.environ.get("SOPILOT_HOME")
    if home:
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sopilot"


def open_store(spec: str | None = None) -> Store:
    """The store that ``spec`` names; nothing is opened before it is used."""
    if not spec:
        from sopilot.adapters.sqlite_store import SQLiteStore

        return SQLiteStore(data_folder() / "sessions.db")
    kind, _, where = spec.partition(":")
    if kind == "sqlite" and where:
        from sopilot.adapters.sqlite_store import SQLiteStore

        return SQLiteStore(Path(where).expanduser())
    if kind in ("postgres", "postgresql") and where:
        from sopilot.adapters.postgres_store import PostgresStore

        # A whole URL is as good as a prefix and a connection string.
        return PostgresStore(f"postgresql:{where}" if where.startswith("//") else where)
    raise UserMistake(
        [
            Diagnostic(
                "unknown-store",
                f"`{spec}` names no store",
                help="sqlite:PATH or postgres:DSN",
            )
        ]
    )


def with_store(spec: str | None, use: Callable[[Store], Awaitable[Answer]]) -> Answer:
    """Runs ``use`` on the store and closes it, whatever happens."""

    async def run() -> Answer:
        store = open_store(spec)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(run())
