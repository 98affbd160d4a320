"""The tools a model is offered, and its calls as something the loop can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.render import words
from sopilot.runtime.agent._step_tool import short_step_tool
from sopilot.runtime.agent.argument_check import argument_problem
from sopilot.runtime.agent.arms import Arm
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolSchema, inputs_of
from sopilot.runtime.vm import (
    IN_PASSING,
    SHORT_NAME,
    STEP_NAMES,
    TOOL_NAME,
    Configuration,
    StepMove,
    parse_steps,
    step_description,
    step_schema,
)
from sopilot.runtime.vm.whole_values import whole_values

END_SESSION: Final = "end_session"


@cache
def step_tool(language: str = "en") -> ToolSchema:
    return ToolSchema(TOOL_NAME, step_description(language), step_schema(language))


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


@dataclass(frozen=True, slots=True)
class StepCall:
    """One call may hold several operations, which are done one after the other."""

    moves: tuple[StepMove, ...]


@dataclass(frozen=True, slots=True)
class DomainToolCall:
    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class EndCall:
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """``problem`` is written for the model."""

    tool: str
    problem: str


Complete = Callable[[str, dict[str, JSON]], dict[str, JSON]]
"""A tool's name and arguments in, the arguments with what is known of them out."""


def _as_it_is(name: str, arguments: dict[str, JSON]) -> dict[str, JSON]:
    return arguments


Parsed = StepCall | DomainToolCall | EndCall | Malformed


class Toolbox:
    """An arm with a machine has the bookkeeping tool, else there is ``end_session``."""

    def __init__(self, arm: Arm, briefing: Briefing, domain: Sequence[ToolSchema]) -> None:
        self.machine = arm.machine
        self._combined = arm.machine and arm.in_order and arm.short_step
        # A domain that has a tool of the short name keeps it.
        taken = any(tool.name == SHORT_NAME for tool in domain)
        self.step_names = frozenset({TOOL_NAME}) if taken else STEP_NAMES
        language = briefing.language
        if not arm.machine:
            own = end_tool(language)
        elif arm.short_step:
            name = TOOL_NAME if taken else SHORT_NAME
            own = short_step_tool(name, briefing.programs.values(), language)
        else:
            own = step_tool(language)
        self.schemas: tuple[ToolSchema, ...] = (own, *domain)
        self._by_name = {schema.name: schema for schema in self.schemas}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._by_name)

    def in_passing(self, call: ToolCall) -> tuple[tuple[StepMove, ...], ToolCall]:
        """What a call of the domain's says to the program before it is made, and the call
        without that. A tool's own arguments are its own."""
        schema = self._by_name.get(call.name)
        if not self._combined or schema is None or call.name in self.step_names:
            return (), call
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return (), call
        own = inputs_of(schema)
        said = (
            [key for key in IN_PASSING if key in arguments and key not in own]
            if isinstance(arguments, dict)
            else []
        )
        if "start" in said and "arguments" in arguments and "arguments" not in own:
            said.append("arguments")
        moves = parse_steps({key: arguments.pop(key) for key in said}) if said else ()
        if not said or isinstance(moves, str):
            return (), call
        return moves, replace(call, arguments=json.dumps(arguments, ensure_ascii=False))

    def parse(
        self,
        call: ToolCall,
        configuration: Configuration | None = None,
        complete: Complete = _as_it_is,
    ) -> Parsed:
        """``configuration`` knows the values that a frame had to abbreviate, ``complete`` those
        that the program has for a call and that need not be written again."""
        schema = self._by_name.get(call.name)
        is_step = self.machine and call.name in self.step_names
        if schema is None and not is_step:
            hint = did_you_mean(call.name, self._by_name)
            return Malformed(call.name, f"there is no tool `{call.name}`; {hint}")
        try:
            arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return Malformed(call.name, f"the arguments are not JSON ({error})")
        if not isinstance(arguments, dict):
            return Malformed(call.name, "the arguments must be a JSON object")
        if schema is None or is_step:
            moves = parse_steps(arguments)
            return Malformed(call.name, moves) if isinstance(moves, str) else StepCall(moves)
        if configuration is not None:
            arguments = complete(call.name, whole_values(configuration, arguments))
        problem = argument_problem(schema, arguments)
        if problem:
            return Malformed(call.name, problem)
        if call.name == END_SESSION:
            return EndCall(str(arguments["outcome"]), str(arguments.get("reason", "")))
        return DomainToolCall(call.name, arguments)
