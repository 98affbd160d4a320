"""Compare the inputs of a handbook's actions with the tools of the upstream servers.

A misspelt or retyped input would be judged under one name and sent under another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.agent.approvers import action_schema
from sopilot.handbook.model import Action, Handbook
from sopilot.integrations.mcp.pins import Catalogue
from sopilot.messages.diagnostic import Diagnostic, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON


def require_same_inputs(handbook: Handbook, catalogue: Catalogue) -> None:
    """Raise ``UserMistake`` with every input that doesn't fit its tool."""
    problems = [
        problem
        for name, action in handbook.actions.items()
        if (offer := catalogue.offer(name)) is not None
        for problem in _problems(action, offer.schema)
    ]
    if problems:
        raise UserMistake(problems)


def _problems(action: Action, tool: ToolSchema) -> Iterator[Diagnostic]:
    own, theirs = inputs_of(action_schema(action)), inputs_of(tool)
    if not theirs and tool.parameters.get("additionalProperties") is not False:
        return  # the server doesn't say what it takes
    for name, schema in own.items():
        if name not in theirs:
            message = f"`{action.name}` has the input `{name}`, but its tool has no such input"
            yield Diagnostic("unknown-input", message, help=did_you_mean(name, theirs))
        elif not _fits(schema, theirs[name]):
            kind, wanted = " or ".join(_kinds(schema)), " or ".join(_kinds(theirs[name]))
            message = (
                f"`{name}` of `{action.name}` is `{kind}` in the handbook and `{wanted}` in its "
                "tool"
            )
            yield Diagnostic("input-type", message, help="write the tool's type in the handbook")
    optional = {item.name for item in action.inputs if not item.required}
    for name in required_of(tool):
        if name not in own:
            message = f"the tool of `{action.name}` needs `{name}`, which isn't among its inputs"
            yield Diagnostic("missing-input", message, help=f"add `{name}` to its inputs")
        elif name in optional:
            message = f"`{name}` of `{action.name}` is optional, but its tool requires it"
            yield Diagnostic("missing-input", message, help=f"make `{name}` required")


def _fits(own: JSON, theirs: JSON) -> bool:
    """Whether every value of our type may be of theirs; a schema without a type takes any."""
    kinds, wanted = _kinds(own), _kinds(theirs)
    return not kinds or not wanted or all(_takes(wanted, kind) for kind in kinds)


def _kinds(schema: JSON) -> list[str]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(kind, list | tuple):
        return [str(each) for each in kind]
    return [kind] if isinstance(kind, str) else []


def _takes(wanted: list[str], kind: str) -> bool:
    return kind in wanted or (kind == "integer" and "number" in wanted)
