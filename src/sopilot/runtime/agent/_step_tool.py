"""The bookkeeping tool in few words, with no more fields than the programs at hand can use.

A field says which operation is meant, so that a model writes no name for it. What it leaves
out, and the long spelling, are still understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sopilot.language.program.model import Choose, Do, Emit, Program
from sopilot.runtime.session.protocols import JSON, ToolSchema

SHORT_DESCRIPTION: Final = "Move the program."
_TEXT: Final[Mapping[str, JSON]] = {"type": "string"}
_YES: Final[Mapping[str, JSON]] = {"type": "boolean"}
_VALUES: Final[Mapping[str, JSON]] = {"type": "object"}
_ALWAYS: Final[Mapping[str, JSON]] = {
    "start": {**_TEXT, "description": "A goal."},
    "arguments": _VALUES,
    "amend": {**_VALUES, "description": "Other values for the goal."},
    "true": {**_TEXT, "description": "Verdicts by number, `1 2`."},
    "false": _TEXT,
    "undecided": _TEXT,
    "complete": _YES,
    "fail": _YES,
}


def short_step_tool(name: str, programs: Iterable[Program]) -> ToolSchema:
    """The same for every request of a run, so that it does not disturb a prefix cache."""
    steps = {
        type(step)
        for program in programs
        for function in program.functions.values()
        for step in function.steps
    }
    properties: dict[str, JSON] = dict(_ALWAYS)
    if steps & {Choose, Do}:
        properties["option"] = {"type": "string", "description": "The branch to take."}
    if Emit in steps:
        properties |= {"name": _TEXT, "content": {**_TEXT, "description": "Text or JSON."}}
    return ToolSchema(name, SHORT_DESCRIPTION, {"type": "object", "properties": properties})
