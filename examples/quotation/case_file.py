"""The decisions of one case in a file, so that an interrupted run can be resumed.

Everything else is computed anew from the inputs and these decisions; so no
stale number can survive a changed decision.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class CaseFile:
    """Decisions by name. The file is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        decisions = json.loads(self._path.read_text(encoding="utf-8"))
        assert isinstance(decisions, dict)
        return decisions

    def decide(self, name: str, value: Any) -> None:
        self._write({**self.read(), name: value})

    def entries(self, name: str) -> dict[str, Any]:
        found = self.read().get(name, {})
        assert isinstance(found, dict)
        return found

    def enter(self, name: str, key: str, value: Any) -> None:
        """Add an entry under ``name``; an existing entry stays as it is."""
        entries = self.entries(name)
        if key not in entries:
            self.decide(name, {**entries, key: value})

    def _write(self, decisions: Mapping[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(dict(decisions), file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
