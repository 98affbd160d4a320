"""Every test has a home of its own: what a user keeps changes no test, and no test touches it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
"""Checkouts and models are found where they lie; nothing in it is a user's."""


@pytest.fixture(scope="session", autouse=True)
def _home_of_shared_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _move_in(patch, tmp_path_factory.mktemp("shared-home"))
        yield


@pytest.fixture(autouse=True)
def _own_home(
    tmp_path_factory: pytest.TempPathFactory, _home_of_shared_fixtures: None
) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _move_in(patch, tmp_path_factory.mktemp("home"))
        yield


def _move_in(patch: pytest.MonkeyPatch, home: Path) -> None:
    """``HOME`` too: an MCP client hands no other variable on to the servers that it starts."""
    if CACHE.exists():
        (home / ".cache").symlink_to(CACHE)
    patch.setenv("HOME", str(home))
    patch.setenv("SOPILOT_HOME", str(home / "sopilot"))
    patch.setenv("XDG_CACHE_HOME", str(CACHE))
    patch.delenv("XDG_DATA_HOME", raising=False)
