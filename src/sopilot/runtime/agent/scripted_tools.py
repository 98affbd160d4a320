"""Tools whose results were written down beforehand: for trying out a handbook without a world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.language.handbook import Action
from sopilot.runtime.agent.argument_check import argument_problem
from sopilot.runtime.session.protocols import JSON, ToolResult, ToolSchema

FAILED = "failed"


class ScriptedTools:
    """``results`` maps an action to its value, or to a list of values for one call after the
    other (the last one stays). ``{failed: value}`` is a call that does not succeed. An action
    without a result fails and says so."""

    def __init__(self, actions: Mapping[str, Action], results: Mapping[str, JSON]) -> None:
        self._schemas = tuple(
            action_schema(action) for action in actions.values() if action.offered
        )
        self._by_name = {schema.name: schema for schema in self._schemas}
        self._results = dict(results)
        self._made: Counter[str] = Counter()
        self._answered: dict[str, ToolResult] = {}

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if key not in self._answered:
            self._answered[key] = self._answer(name, arguments)
        return self._answered[key]

    def _answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        problem = argument_problem(self._by_name[name], arguments)
        if problem:
            return ToolResult(False, {"error": problem})
        if name not in self._results:
            return ToolResult(False, {"error": f"no result was written down for `{name}`"})
        value = self._results[name]
        if isinstance(value, list):
            value = value[min(self._made[name], len(value) - 1)] if value else None
        self._made[name] += 1
        if isinstance(value, Mapping) and set(value) == {FAILED}:
            return ToolResult(False, value[FAILED])
        return ToolResult(True, value)


def action_schema(action: Action) -> ToolSchema:
    """An action of a handbook as a tool."""
    properties: dict[str, Any] = {}
    for item in action.inputs:
        properties[item.name] = dict(item.schema) if item.schema else {"type": item.type}
        if item.says:
            properties[item.name]["description"] = item.says
    return ToolSchema(
        action.name,
        action.says,
        {
            "type": "object",
            "properties": properties,
            "required": [item.name for item in action.inputs if item.required],
            "additionalProperties": False,
        },
    )
