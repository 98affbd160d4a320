"""The tools a model is offered, and the meaning of its calls.

Arguments are checked against the tool's schema as far as sopilot reads it; the tool itself judges
the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sopilot.machine.state import Configuration
from sopilot.machine.terms import whole_values
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.scaffold import LONG_TOOL, StepTool, words
from sopilot.program.model import Act, Program, Unknown
from sopilot.protocols import ToolCall, ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON
from sopilot.values.schema import violation
from sopilot.views.briefing import Briefing
from sopilot.views.guard_answers import guard_tools
from sopilot.views.quoting import shape
from sopilot.views.step_tool import (
    IN_PASSING,
    SHORT_NAME,
    STEP_NAMES,
    TOOL_NAME,
    StepMove,
    beyond_paper,
    parse_steps,
    short_step_tool,
    step_tool,
)
from sopilot.views.view import View


def argument_problem(tool: ToolSchema, arguments: Mapping[str, JSON]) -> str:
    """Why the arguments don't fit the tool's schema, for the model; empty if they fit."""
    properties = tool.parameters.get("properties")
    # A tool that lists its arguments takes no others, unless it says so.
    closed = not tool.parameters.get("additionalProperties", not isinstance(properties, Mapping))
    if not isinstance(properties, Mapping):
        properties = {}
    for name, value in arguments.items():
        schema = properties.get(name)
        if schema is None:
            if closed:
                hint = did_you_mean(name, properties)
                return sentence("no-such-argument", tool=tool.name, name=name, hint=hint)
        elif isinstance(schema, Mapping):
            problem = violation(value, schema, f"`{name}`")
            if problem is not None:
                takes = f"{name}: {shape(schema)}"
                return sentence("argument-problem", problem=problem, tool=tool.name, takes=takes)
    missing = [name for name in required_of(tool) if name not in arguments]
    if missing:
        named = (
            f"`{name}` (`{shape(properties[name])}`)" if name in properties else f"`{name}`"
            for name in missing
        )
        return sentence("also-needs", tool=tool.name, names=", ".join(named))
    return ""


END_SESSION: Final = "end_session"


def end_tool(language: str = "en") -> ToolSchema:
    table = words(language)
    outcome = {"type": "string", "enum": ["executed", "refused"]}
    return ToolSchema(
        END_SESSION,
        table["end_tool"],
        {
            "type": "object",
            "properties": {
                "outcome": {**outcome, "description": table["end_outcome"]},
                "reason": {"type": "string", "description": table["end_reason"]},
            },
            "required": ["outcome"],
            "additionalProperties": False,
        },
    )


def _filled_in(programs: Iterable[Program]) -> dict[str, set[str]]:
    """Action → the inputs that every call of it in the programs has a value for."""
    result: dict[str, set[str]] = {}
    for program in programs:
        for function in program.functions.values():
            for act in (*function.steps, *(item for acts in function.fallbacks for item in acts)):
                if isinstance(act, Act):
                    known = {name for name, item in act.arguments if not isinstance(item, Unknown)}
                    result[act.action] = result.get(act.action, known) & known
    return result


def _without_required(tool: ToolSchema, names: Collection[str]) -> ToolSchema:
    required = required_of(tool)
    left = [name for name in required if name not in names]
    if len(left) == len(required):
        return tool
    return replace(tool, parameters={**tool.parameters, "required": left})


Complete = Callable[[str, dict[str, JSON]], dict[str, JSON]]
"""A tool's name and arguments in, the arguments with what is known of them out."""


class Toolbox:
    """A view with a machine has the bookkeeping tool, else there is ``end_session``."""

    def __init__(self, view: View, briefing: Briefing, domain: Sequence[ToolSchema]) -> None:
        self.machine = view.has_steps
        self._paper = view.paper_steps
        self._combined = view.has_steps and view.in_order and view.short_step
        # A domain that has a tool of the short name keeps it.
        taken = any(tool.name == SHORT_NAME for tool in domain)
        self.step_names = frozenset({TOOL_NAME}) if taken else STEP_NAMES
        language = briefing.language
        if not view.has_steps:
            own = end_tool(language)
        elif view.short_step:
            name = TOOL_NAME if taken else SHORT_NAME
            own = short_step_tool(
                name, briefing.programs.values(), language, enters=view.automation.enter_calls
            )
        else:
            own = step_tool(language, paper=view.paper_steps)
        self.step = LONG_TOOL
        """How the bookkeeping tool is written."""
        if view.has_steps:
            whole = not view.paper_steps
            self.step = StepTool(own.name, short=view.short_step, undecided=whole, amend=whole)
        if view.guard:
            domain = (*domain, *guard_tools(briefing.guarding().values(), language))
        self._by_name = {schema.name: schema for schema in (own, *domain)}
        # The programs fill in the values that they have, so no schema may insist on those.
        filled = _filled_in(briefing.programs.values()) if self._combined else {}
        relaxed = (_without_required(tool, filled.get(tool.name, ())) for tool in domain)
        self.schemas: tuple[ToolSchema, ...] = (own, *relaxed)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._by_name)

    def in_passing(self, call: ToolCall) -> tuple[tuple[StepMove, ...], ToolCall]:
        """The steps that a domain call carries in its arguments, and the call without them. A
        tool's own arguments are never steps."""
        schema = self._by_name.get(call.name)
        if not self._combined or schema is None or call.name in self.step_names:
            return (), call
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return (), call
        own = inputs_of(schema)
        reply = (
            [key for key in IN_PASSING if key in arguments and key not in own]
            if isinstance(arguments, dict)
            else []
        )
        if "start" in reply and "arguments" in arguments and "arguments" not in own:
            reply.append("arguments")
        moves = parse_steps({key: arguments.pop(key) for key in reply}) if reply else ()
        if not reply or isinstance(moves, str):
            return (), call
        return moves, replace(call, arguments=json.dumps(arguments, ensure_ascii=False))

    def is_step(self, name: str) -> bool:
        return self.machine and name in self.step_names

    def parse(
        self, call: ToolCall, configuration: Configuration, complete: Complete
    ) -> tuple[StepMove, ...] | dict[str, JSON] | str:
        """The operations of the bookkeeping tool, the arguments of another tool, or what is wrong
        with the call, for the model. ``configuration`` knows the values that a frame had to
        abbreviate, ``complete`` those that the program has for a call and that need not be
        written again."""
        schema = self._by_name.get(call.name)
        is_step = self.is_step(call.name)
        if schema is None and not is_step:
            hint = did_you_mean(call.name, self.names - {END_SESSION})
            return sentence("unknown-tool", name=call.name, hint=hint)
        try:
            arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return sentence("not-json-because", error=error)
        if not isinstance(arguments, dict):
            return sentence("not-an-object")
        if schema is None or is_step:
            moves = parse_steps(arguments)
            if isinstance(moves, str) or not self._paper:
                return moves
            return next(filter(None, (beyond_paper(move.operation) for move in moves)), moves)
        arguments = complete(call.name, whole_values(configuration, arguments))
        return argument_problem(schema, arguments) or arguments
