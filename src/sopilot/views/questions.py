"""The tools with which a program asks the user."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sopilot.handbook.model import BUILT_IN, CONFIRM
from sopilot.messages.scaffold import words
from sopilot.program.model import Act, Function, Program
from sopilot.protocols import ToolSchema
from sopilot.values.json import JSON


def question_steps(programs: Iterable[Program]) -> Iterable[tuple[Program, Function, Act]]:
    for program in programs:
        for function in program.functions.values():
            for step in function.steps:
                if isinstance(step, Act) and step.action in BUILT_IN:
                    yield program, function, step


def user_tools(programs: Iterable[Program], language: str = "en") -> tuple[ToolSchema, ...]:
    """The tools of these programs that ask the user."""
    inputs: dict[str, dict[str, JSON]] = {}
    for _, _, act in question_steps(programs):
        inputs.setdefault(act.action, {}).update({name: {} for name, _ in act.arguments})
    return tuple(
        ToolSchema(
            name,
            words(language)[f"tool_{name}"],
            {
                "type": "object",
                "properties": {**result, subject_name(name): {"type": "string"}},
                "required": [subject_name(name)],
                "additionalProperties": False,
            },
        )
        for name, result in sorted(inputs.items())
    )


def subject_name(name: str) -> str:
    return "action" if name == CONFIRM else "question"


def plain_text(value: JSON) -> str:
    return value if isinstance(value, str) else json_text(value)


def json_text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
