"""The airline as the tools of a session: the checkout's own functions on a copy of its data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON

NOW = "2024-05-15T15:00:00-05:00"
"""The moment that the policy names, in Eastern Standard Time."""


class AirlineTools:
    """``tools`` are classes with ``invoke(data=…, …)`` and ``get_info()``, ``data`` is what they
    start from, as JSON text. What they answer as JSON text is read; an error's text stands
    under ``error``."""

    def __init__(self, tools: Mapping[str, Any], data: str) -> None:
        self.classes = tools
        self.data: dict[str, Any] = json.loads(data)

    def time(self) -> str:
        return NOW

    def schemas(self) -> Sequence[ToolSchema]:
        described = [tool.get_info()["function"] for tool in self.classes.values()]
        return [ToolSchema(one["name"], one["description"], one["parameters"]) for one in described]

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return self.perform(name, arguments)

    def perform(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        if name not in self.classes:
            return ToolResult(False, {"error": f"Error: there is no tool {name}"})
        given = json.loads(json.dumps(dict(arguments)))
        try:
            answer = self.classes[name].invoke(data=self.data, **given)
        except Exception as problem:  # as the benchmark's own environment has it
            answer = f"Error: {problem}"
        if isinstance(answer, str) and answer.startswith("Error"):
            return ToolResult(False, {"error": answer})
        return ToolResult(True, _read(answer))


def _read(answer: JSON) -> JSON:
    if not isinstance(answer, str):
        return answer
    try:
        value: JSON = json.loads(answer)
    except ValueError:
        return answer
    return value
