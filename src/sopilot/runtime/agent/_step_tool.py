"""The bookkeeping tool in few words, with no more fields than the programs at hand can use.

A field says which operation is meant, so that a model writes no name for it. What it leaves
out, and the long spelling, are still understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sopilot.language.program.model import Choose, Do, Emit, Program
from sopilot.runtime.session.protocols import JSON, ToolSchema

SHORT_DESCRIPTION: Final = "Move the program. One call may hold verdicts and what follows them."
_TEXT: Final[Mapping[str, JSON]] = {"type": "string"}
_ALWAYS: Final[Mapping[str, JSON]] = {
    "start": {"type": "string", "description": "The goal."},
    "arguments": {"type": "object", "description": "Values for `start` or `call`."},
    "amend": {"type": "object", "description": "Other values for the running goal."},
    "holds": {"type": "boolean", "description": "Your verdict on the present rule."},
    "true": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Several verdicts: the numbers of `judge` that hold; 1 is the present.",
    },
    "false": {"type": "array", "items": {"type": "integer"}},
    "undecided": {"type": "boolean", "description": "Instead of `holds`."},
    "complete": {"type": "boolean"},
    "fail": {"type": "boolean"},
    "call": {"type": "string", "description": "A function that the program waits at."},
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
