from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    for name in ("STORE", "MODEL", "VIEW", "LANGUAGE", "CONFIG"):
        monkeypatch.delenv(f"SOPILOT_{name}", raising=False)
