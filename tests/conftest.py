"""Every test has a home of its own: what a user keeps changes no test, and no test touches it."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from store_parts import AnyStore, Closing

    from postgres_here import PostgresHere
    from sopilot.records.store import Store

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
"""Checkouts and models are found where they lie; nothing in it is a user's."""


@pytest.fixture(scope="session", autouse=True)
def _home_of_shared_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _move_in(patch, tmp_path_factory.mktemp("shared-home"))
        yield


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path], _home_of_shared_fixtures: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _move_in(patch, next(_homes))
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Counted here: the factory would look through all folders there are for the next number."""
    street = tmp_path_factory.mktemp("homes")
    return (street / str(number) for number in itertools.count())


def _move_in(patch: pytest.MonkeyPatch, home: Path) -> None:
    """``HOME`` too: an MCP client hands no other variable on to the servers that it starts."""
    home.mkdir(exist_ok=True)
    if CACHE.exists():
        (home / ".cache").symlink_to(CACHE)
    patch.setenv("HOME", str(home))
    patch.setenv("SOPILOT_HOME", str(home / "sopilot"))
    patch.setenv("XDG_CACHE_HOME", str(CACHE))
    patch.delenv("XDG_DATA_HOME", raising=False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresHere]:
    from postgres_here import postgres_here

    try:
        manager = postgres_here()
        server = manager.__enter__()
    except (ImportError, OSError, subprocess.SubprocessError) as problem:
        pytest.skip(f"no PostgreSQL server could be started here: {problem!r}")
    yield server
    manager.__exit__(None, None, None)


@pytest.fixture
def closing() -> Iterator[Closing]:
    """Close the stores that go through it when the test is over."""
    stores: list[Store] = []

    def note(store: AnyStore) -> AnyStore:
        stores.append(store)
        return store

    async def close() -> None:
        for store in stores:
            await store.close()

    yield note
    asyncio.run(close())
