"""A task's simulator as the tools of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.lab.bench.sopbench_process import Simulator, ToolList, Upstream
from sopilot.lab.bench.source import SopbenchTask, offered_actions
from sopilot.language.handbook import Action
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolResult, ToolSchema

NO_CALL = frozenset({"n/a", "na", "none", "null"})
"""Names by which models say that they call nothing; upstream takes them so."""


class SopbenchTools:
    """Offers exactly the tool list; implements ``KeepsUnmadeCalls``. A call blocks the event
    loop for the fraction of a millisecond that the simulator needs, which is cheaper than a
    thread."""

    def __init__(self, task: SopbenchTask, simulator: Simulator, tools: ToolList) -> None:
        self._schemas = domain_schemas(task, tools)
        self._simulator = simulator

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        outcome = self._simulator.call(name, arguments)
        return ToolResult(outcome.ok, outcome.value)

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        """Into the log that the oracle reads, as upstream's runner would write it."""
        if call.name.lower() in NO_CALL:
            return False
        self._simulator.unmade(call.name, _object(call.arguments), problem)
        return True


def _object(written: str) -> dict[str, JSON]:
    """What cannot be read as arguments has none."""
    try:
        arguments = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def open_world(
    task: SopbenchTask, tools: ToolList, upstream: Upstream
) -> tuple[Simulator, SopbenchTools]:
    simulator = upstream.open(task.domain, task.goal, task.index, tools=tools)
    return simulator, SopbenchTools(task, simulator, tools)


def domain_schemas(task: SopbenchTask, tools: ToolList) -> tuple[ToolSchema, ...]:
    offered = offered_actions(task.handbook, tools)
    return tuple(
        _schema(action) for name, action in task.handbook.actions.items() if name in offered
    )


def _schema(action: Action) -> ToolSchema:
    properties = {
        each.name: dict(each.schema)
        if each.schema is not None
        else {"type": each.type, "description": each.says}
        for each in action.inputs
    }
    required = [each.name for each in action.inputs if each.required]
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return ToolSchema(action.name, action.says, parameters)
