"""Every store under the same tests; PostgreSQL is a real server."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from runtime_role import runtime_dsn
from store_parts import Closing, StoreFactory

from postgres_here import PostgresHere
from sopilot.records.store import Store
from sopilot.stores.encrypted import KeyFolder, encrypted
from sopilot.stores.memory import MemoryStore
from sopilot.stores.postgres import PostgresStore
from sopilot.stores.sql import SqlStore
from sopilot.stores.sqlite import SQLiteStore

_numbers = itertools.count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Running sessions needs few rights; forgetting and rebuilding are a keeper's."""
    if "open_store" in metafunc.fixturenames:
        kinds = ["memory", "sqlite", "postgres"]
        if metafunc.module.__name__ in ("test_store_conformance", "test_shared_store"):
            kinds.append("postgres-runtime")
        if metafunc.module.__name__ in ("test_store_conformance", "test_erasure"):
            kinds.append("encrypted")
        metafunc.parametrize("open_store", kinds, indirect=True)


@pytest.fixture
def open_store(request: pytest.FixtureRequest, tmp_path: Path, closing: Closing) -> StoreFactory:
    if request.param == "memory":
        store = closing(MemoryStore())
        return lambda: store
    if request.param == "sqlite":
        return lambda: closing(SQLiteStore(tmp_path / "sessions.db"))
    if request.param == "encrypted":
        keys = KeyFolder(tmp_path / "keys")
        return lambda: closing(encrypted(SQLiteStore(tmp_path / "sessions.db"), keys))
    server: PostgresHere = request.getfixturevalue("postgres")
    schema = f"conformance_{next(_numbers)}"
    dsn = runtime_dsn(server, schema) if request.param == "postgres-runtime" else server.dsn
    return lambda: closing(PostgresStore(dsn, schema=schema))


@pytest.fixture
def store(open_store: StoreFactory) -> Store:
    return open_store()


@pytest.fixture
def file_store(tmp_path: Path, closing: Closing) -> SQLiteStore:
    """In `s.db`."""
    return closing(SQLiteStore(tmp_path / "s.db"))


@pytest.fixture
def server_store(postgres: PostgresHere, closing: Closing) -> PostgresStore:
    """In a schema of its own."""
    return closing(PostgresStore(postgres.dsn, schema=f"own_{next(_numbers)}"))


@pytest.fixture(params=["file_store", "server_store"])
def durable(request: pytest.FixtureRequest) -> SqlStore:
    """In a file and in a server."""
    store: SqlStore = request.getfixturevalue(request.param)
    return store
