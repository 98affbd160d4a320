"""The tools a model is offered, and its calls as something the loop can do.

Arguments are checked against what a provider's schema promises: required and unknown names,
types, enumerations, also inside of objects and lists. The tool itself judges the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sopilot.machine.state import Configuration
from sopilot.machine.terms import whole_values
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.scaffold import LONG_TOOL, StepTool, words
from sopilot.program.model import Act, Program, Unknown
from sopilot.protocols import ToolCall, ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON
from sopilot.values.schema import TYPES, is_of_type
from sopilot.views.briefing import Briefing
from sopilot.views.guard_answers import judge_tool
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
    """What is wrong, or nothing. A schema that is none promises nothing."""
    properties = tool.parameters.get("properties")
    # A tool that lists its arguments takes no others, unless it says so.
    closed = not tool.parameters.get("additionalProperties", not isinstance(properties, Mapping))
    if not isinstance(properties, Mapping):
        properties = {}
    for name, value in arguments.items():
        schema = properties.get(name)
        if schema is None:
            if closed:
                return sentence(
                    "no-such-argument",
                    tool=tool.name,
                    name=name,
                    hint=did_you_mean(name, properties),
                )
        elif isinstance(schema, Mapping) and not _fits(schema, value):
            return sentence("argument-type", name=name, tool=tool.name, wanted=_wanted(schema))
    required = _strings(tool.parameters.get("required"))
    missing = [name for name in required if name not in arguments]
    if missing:
        named = (
            f"`{name}` (`{shape(properties[name])}`)" if name in properties else f"`{name}`"
            for name in missing
        )
        return sentence("also-needs", tool=tool.name, names=", ".join(named))
    return ""


def _fits(schema: Mapping[str, JSON], value: JSON) -> bool:
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and value not in choices:
        return False
    kinds = _kinds(schema)
    if kinds and not any(is_of_type(value, kind) for kind in kinds):
        return False
    return _fits_inside(schema, value)


def _fits_inside(schema: Mapping[str, JSON], value: JSON) -> bool:
    """Of an object or a list that the schema describes, what it holds."""
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(properties, Mapping):
        if any(name not in value for name in _strings(schema.get("required"))):
            return False
        inside = [(properties.get(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        inside = [(items, item) for item in value]
    else:
        return True
    return all(not isinstance(item, Mapping) or _fits(item, held) for item, held in inside)


def _kinds(schema: Mapping[str, JSON]) -> list[str]:
    """Empty if any kind is unknown, since other values might fit then."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list | tuple) else [kind]
    known = [item for item in kinds if isinstance(item, str) and item in TYPES]
    return known if len(known) == len(kinds) else []


def _strings(listed: JSON) -> list[str]:
    value = listed if isinstance(listed, list | tuple) else ()
    return [item for item in value if isinstance(item, str)]


def _wanted(schema: Mapping[str, JSON]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list | tuple):
        return sentence("argument-one-of", names=", ".join(f"`{value}`" for value in choices))
    if schema.get("properties") or schema.get("items"):
        return f"`{shape(schema)}`"
    return sentence("argument-type-of", types=" or ".join(_kinds(schema)))


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


@dataclass(frozen=True, slots=True)
class StepCall:
    """One call may hold several operations, which are done one after the other."""

    moves: tuple[StepMove, ...]


@dataclass(frozen=True, slots=True)
class DomainToolCall:
    """Of a tool of the domain, or of the toolbox's own beside the bookkeeping tool."""

    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Malformed:
    """``problem`` is written for the model."""

    tool: str
    problem: str


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
Parsed = StepCall | DomainToolCall | Malformed


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
        judging = judge_tool(briefing.guarding().values(), language) if view.guard else None
        domain = (*domain, judging) if judging is not None else domain
        self._by_name = {schema.name: schema for schema in (own, *domain)}
        # What the programs have for a call is filled in, so no schema may insist on it.
        filled = _filled_in(briefing.programs.values()) if self._combined else {}
        relaxed = (_without_required(tool, filled.get(tool.name, ())) for tool in domain)
        self.schemas: tuple[ToolSchema, ...] = (own, *relaxed)

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

    def parse(self, call: ToolCall, configuration: Configuration, complete: Complete) -> Parsed:
        """``configuration`` knows the values that a frame had to abbreviate, ``complete`` those
        that the program has for a call and that need not be written again."""
        schema = self._by_name.get(call.name)
        is_step = self.machine and call.name in self.step_names
        if schema is None and not is_step:
            hint = did_you_mean(call.name, self._by_name)
            return Malformed(call.name, sentence("unknown-tool", name=call.name, hint=hint))
        try:
            arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return Malformed(call.name, sentence("not-json-because", error=error))
        if not isinstance(arguments, dict):
            return Malformed(call.name, sentence("not-an-object"))
        if schema is None or is_step:
            moves = parse_steps(arguments)
            if isinstance(moves, str):
                return Malformed(call.name, moves)
            lacking = [beyond_paper(move.operation) for move in moves] if self._paper else []
            problem = next(filter(None, lacking), "")
            return Malformed(call.name, problem) if problem else StepCall(moves)
        arguments = complete(call.name, whole_values(configuration, arguments))
        problem = argument_problem(schema, arguments)
        if problem:
            return Malformed(call.name, problem)
        return DomainToolCall(call.name, arguments)
