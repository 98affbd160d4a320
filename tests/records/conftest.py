"""Every test of records has a store of its own, which commands use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    spec = f"sqlite:{tmp_path}/store.db"
    monkeypatch.setenv("SOPILOT_STORE", spec)
    return spec
