"""The tools a model is offered, and its calls as something the loop can do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.render import words
from sopilot.runtime.agent._step_tool import short_step_tool
from sopilot.runtime.agent.argument_check import argument_problem
from sopilot.runtime.agent.arms import Arm
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolSchema
from sopilot.runtime.vm import (
    TOOL_NAME,
    Configuration,
    Return,
    ToolOperation,
    parse_step,
    step_description,
    step_schema,
)
from sopilot.runtime.vm.whole_values import whole_values

END_SESSION: Final = "end_session"


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
    """``about`` is the function that a verdict was written for, where the model says it."""

    operation: ToolOperation
    about: str = ""


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


Parsed = StepCall | DomainToolCall | EndCall | Malformed


class Toolbox:
    """An arm with a machine has the bookkeeping tool, else there is ``end_session``."""

    def __init__(self, arm: Arm, briefing: Briefing, domain: Sequence[ToolSchema]) -> None:
        self.machine = arm.machine
        language = briefing.language
        if not arm.machine:
            own = end_tool(language)
        elif arm.short_step:
            own = short_step_tool(briefing.programs.values(), language)
        else:
            own = step_tool(language)
        self.schemas: tuple[ToolSchema, ...] = (own, *domain)
        self._by_name = {schema.name: schema for schema in self.schemas}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._by_name)

    def parse(self, call: ToolCall, configuration: Configuration | None = None) -> Parsed:
        """``configuration`` knows the values that a frame had to abbreviate."""
        schema = self._by_name.get(call.name)
        if schema is None:
            hint = did_you_mean(call.name, self._by_name)
            return Malformed(call.name, f"there is no tool `{call.name}`; {hint}")
        try:
            arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return Malformed(call.name, f"the arguments are not JSON ({error})")
        if not isinstance(arguments, dict):
            return Malformed(call.name, "the arguments must be a JSON object")
        if call.name == TOOL_NAME:
            operation = parse_step(arguments)
            if isinstance(operation, str):
                return Malformed(call.name, operation)
            return StepCall(operation, _about(operation, arguments))
        if configuration is not None:
            arguments = whole_values(configuration, arguments)
        problem = argument_problem(schema, arguments)
        if problem:
            return Malformed(call.name, problem)
        if call.name == END_SESSION:
            return EndCall(str(arguments["outcome"]), str(arguments.get("reason", "")))
        return DomainToolCall(call.name, arguments)


def _about(operation: ToolOperation, arguments: Mapping[str, JSON]) -> str:
    """Some models write the whole call; its name is enough."""
    if not isinstance(operation, Return):
        return ""
    return str(arguments.get("function") or "").partition("(")[0].strip()
