"""An example's simulator in a file, so that it outlives the process as a real system would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sopilot.files.text import whole_text, write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.tasks.examples.simulator import Simulator
from sopilot.values.json import JSON

_CURE = "name a writable folder with --store sqlite:PATH, or with the variable SOPILOT_HOME"


class SavedSimulation:
    """Every change is in the file before the caller hears of it."""

    def __init__(self, simulator: Simulator, path: Path) -> None:
        self.simulator = simulator
        self._path = path
        if not path.exists():
            self._write()
            return
        try:
            simulator.restore(json.loads(whole_text(path)))
        except (OSError, ValueError, RecursionError) as problem:
            message = f"the example's state can't be read: {problem}"
            raise mistake("no-simulator-state", message, Place(str(path)), _CURE) from problem

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
        # Simulated people have passwords too.
        text = json.dumps(self.simulator.snapshot(), ensure_ascii=False)
        write_whole(self._path, text, _CURE, private=True)
