"""An honest executor that errs like a careful reader.

It reads one thing more before it judges, cites results as one text, the extra one too, and
judges after a look-up that failed. Everything else is the reference executor's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from sopilot.agent.reference.executor import Reference
from sopilot.agent.reference.reading import read_facts
from sopilot.program.model import Act, Kind, Program
from sopilot.protocols import ModelReply, ModelRequest, ToolCall
from sopilot.trace.events import Return
from sopilot.views.step_tool import IN_PASSING, parse_steps
from sopilot_lab.experiments.misbehaviour import frame_in


def readers(programs: Mapping[str, Program]) -> frozenset[str]:
    """The actions of which the programs say that they change nothing."""
    found: set[str] = set()
    gates: set[str] = set()
    for program in programs.values():
        found.update(program.read_only)
        found.update(name for name, one in program.actions.items() if one.changes == ())
        for function in program.functions.values():
            if function.kind is Kind.GATE:
                gates.update(step.action for step in function.steps if isinstance(step, Act))
    return frozenset(found - gates)


class CarefulReader:
    """``reading`` are the tools that it may call once more than it is told to."""

    def __init__(self, reference: Reference, reading: Collection[str]) -> None:
        self._reference = reference
        self._reading = reading
        self._read_for: set[str] = set()
        self.extra = 0
        self.texts = 0

    @property
    def name(self) -> str:
        return "careful"

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._reference.complete(request)
        if not any(map(_judges, reply.tool_calls)):
            return reply
        return self._one_more(request) or replace(
            reply, tool_calls=tuple(map(self._as_text, reply.tool_calls))
        )

    def _one_more(self, request: ModelRequest) -> ModelReply | None:
        facts = read_facts(request)
        head = frame_in(request).splitlines()[0]
        if head in self._read_for:
            return None
        self._read_for.add(head)
        made = {one.action for one in facts.here}
        for tool in sorted(request.tools, key=lambda one: (head + one.name)[::-1]):
            needed = tool.parameters.get("required", ())
            known = {name: facts.values.get(name) for name in needed}
            if tool.name in self._reading and tool.name not in made and None not in known.values():
                self.extra += 1
                call = ToolCall(f"more_{self.extra}", tool.name, json.dumps(known))
                return ModelReply("", (call,))
        return None

    def _as_text(self, call: ToolCall) -> ToolCall:
        arguments = json.loads(call.arguments)
        cited = arguments.get("evidence")
        if not cited:
            return call
        self.texts += 1
        arguments["evidence"] = ", ".join(cited)
        return replace(call, arguments=json.dumps(arguments))


def _judges(call: ToolCall) -> bool:
    arguments = json.loads(call.arguments or "{}")
    if call.name not in ("step", "pg_program_step"):
        arguments = {key: arguments[key] for key in IN_PASSING if key in arguments}
    moves = parse_steps(arguments)
    return isinstance(moves, tuple) and any(isinstance(one.operation, Return) for one in moves)
