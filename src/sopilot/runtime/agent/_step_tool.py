"""The bookkeeping tool with no more fields than the programs at hand can use.

What it leaves out is still understood when a model writes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sopilot.language.program.model import Choose, Do, Emit, Program
from sopilot.language.render import words
from sopilot.runtime.session.protocols import JSON, ToolSchema
from sopilot.runtime.vm import TOOL_NAME, step_schema

_ALWAYS = ("operation", "goal", "arguments", "function", "holds", "evidence", "summary", "reason")
_DESCRIBED = frozenset({"arguments", "evidence"})


def short_step_tool(programs: Iterable[Program], language: str = "en") -> ToolSchema:
    """The same for every request of a run, so that it does not disturb a prefix cache."""
    steps = {
        type(step)
        for program in programs
        for function in program.functions.values()
        for step in function.steps
    }
    names = list(_ALWAYS)
    if steps & {Choose, Do}:
        names.append("option")
    if Emit in steps:
        names += ["name", "content"]
    schema = step_schema(language)
    full = schema["properties"]
    properties: dict[str, JSON] = {name: _field(name, full[name]) for name in names}
    operations = [
        one for one in full["operation"]["enum"] if one != "emit_artifact" or Emit in steps
    ]
    properties["operation"] = {"type": "string", "enum": operations}
    said = words(language)["step_tool_short"]
    return ToolSchema(TOOL_NAME, said, {**schema, "properties": properties})


def _field(name: str, schema: dict[str, JSON]) -> dict[str, JSON]:
    if name in _DESCRIBED or name in ("option", "content"):
        return schema
    return {key: value for key, value in schema.items() if key != "description"}
