"""An example's simulator in a file, so that it outlives the process as a real system would."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.tasks.examples.simulator import Simulator
from sopilot.values.json import JSON


class SavedSimulation:
    """Every change is on disk before the caller hears of it."""

    def __init__(self, simulator: Simulator, path: Path) -> None:
        self.simulator = simulator
        self._path = path
        try:
            if path.exists():
                simulator.restore(json.loads(whole_text(path)))
            else:
                self._write()
        except (OSError, ValueError, RecursionError) as problem:
            raise mistake(
                "no-simulator-state",
                f"the example's state can't be saved here: {problem}",
                Place(str(path)),
                "name a writable folder with --store sqlite:PATH, or with "
                "the variable SOPILOT_HOME",
            ) from problem

    def schemas(self) -> Sequence[ToolSchema]:
        return self.simulator.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = self.simulator.perform(name, arguments, key=key)
        self._write()
        return result

    async def recall(self, key: str) -> ToolResult | None:
        answered = self.simulator.snapshot()["answered"].get(key)
        return None if answered is None else ToolResult(answered["ok"], answered["value"])

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        # Simulated people have passwords too.
        with open(part, "w", encoding="utf-8", opener=_private) as file:
            json.dump(self.simulator.snapshot(), file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
