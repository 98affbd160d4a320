"""Every store under the same tests; PostgreSQL is a real server."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from postgres_here import PostgresHere, postgres_here
from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.postgres_store import PostgresStore
from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.runtime.session import Store

StoreFactory = Callable[[], Store]
"""Another handle on the same stored sessions; for memory, the same store."""

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresHere]:
    try:
        manager = postgres_here()
        server = manager.__enter__()
    except (ImportError, OSError, subprocess.SubprocessError) as problem:
        pytest.skip(f"no PostgreSQL server could be started here: {problem!r}")
    yield server
    manager.__exit__(None, None, None)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "sessions.db")
    server: PostgresHere = request.getfixturevalue("postgres")
    schema = f"conformance_{next(_numbers)}"
    return lambda: PostgresStore(server.dsn, schema=schema)
