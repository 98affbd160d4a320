"""The bookkeeping tool in few words, with no more fields than the programs at hand can use.

A field says which operation is meant, so that a model writes no name for it. What it leaves
out, and the long spelling, are still understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sopilot.language.program.model import Choose, Do, Emit, Program
from sopilot.language.render import words
from sopilot.runtime.session.protocols import JSON, ToolSchema

_TEXT: Final[Mapping[str, JSON]] = {"type": "string"}
_YES: Final[Mapping[str, JSON]] = {"type": "boolean"}
_VALUES: Final[Mapping[str, JSON]] = {"type": "object"}


def short_step_tool(name: str, programs: Iterable[Program], language: str = "en") -> ToolSchema:
    """The same for every request of a run, so that it does not disturb a prefix cache."""
    steps = {
        type(step)
        for program in programs
        for function in program.functions.values()
        for step in function.steps
    }
    table = words(language)
    properties = _always(table)
    if steps & {Choose, Do}:
        properties["option"] = {"type": "string", "description": table["short_option"]}
    if Emit in steps:
        properties |= {"name": _TEXT, "content": {**_TEXT, "description": table["short_content"]}}
    return ToolSchema(name, table["step_tool_short"], {"type": "object", "properties": properties})


def _always(table: Mapping[str, str]) -> dict[str, JSON]:
    return {
        "start": {**_TEXT, "description": table["short_start"]},
        "arguments": _VALUES,
        "amend": {**_VALUES, "description": table["short_amend"]},
        "true": {**_TEXT, "description": table["short_true"]},
        "false": _TEXT,
        "undecided": _TEXT,
        "complete": _YES,
        "fail": _YES,
    }
