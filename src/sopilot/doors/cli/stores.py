"""The option `--store`, and a command's work on what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from sopilot.adapters.store_by_name import open_store
from sopilot.runtime.session import Store

Answer = TypeVar("Answer")

STORE = click.option(
    "--store",
    "store_spec",
    metavar="sqlite:PATH|postgres:DSN",
    envvar="SOPILOT_STORE",
    help="Where sessions are kept. Default: sessions.db in the user's data folder.",
)


def with_store(
    spec: str | None, use: Callable[[Store], Awaitable[Answer]], *, reading: bool = False
) -> Answer:
    """Runs ``use`` on the store and closes it, whatever happens. What only looks is
    ``reading``, and makes nothing where there is nothing."""

    async def run() -> Answer:
        store = open_store(spec, reading=reading)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(run())
