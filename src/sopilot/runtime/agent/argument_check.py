"""Whether a call's arguments fit the tool's schema, said so that a model can correct them.

Only what a provider's schema promises at the top level: required names, unknown
names, types, enumerations. The tool itself judges the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import did_you_mean
from sopilot.runtime.session.protocols import JSON, ToolSchema
from sopilot.runtime.vm.schema_check import TYPES, is_of_type


def argument_problem(tool: ToolSchema, arguments: Mapping[str, JSON]) -> str:
    """What is wrong, or nothing. A schema that is none promises nothing."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, Mapping):
        properties = {}
    closed = tool.parameters.get("additionalProperties", True) is False
    for name, value in arguments.items():
        schema = properties.get(name)
        if schema is None:
            if closed:
                return f"`{tool.name}` has no argument `{name}`; {did_you_mean(name, properties)}"
        elif isinstance(schema, Mapping) and not _fits(schema, value):
            return f"the argument `{name}` of `{tool.name}` must be {_wanted(schema)}"
    required = _strings(tool.parameters.get("required"))
    missing = [name for name in required if name not in arguments]
    if missing:
        return f"`{tool.name}` also needs {', '.join(f'`{name}`' for name in missing)}"
    return ""


def _fits(schema: Mapping[str, JSON], value: JSON) -> bool:
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and value not in choices:
        return False
    kinds = _kinds(schema)
    return not kinds or any(is_of_type(value, kind) for kind in kinds)


def _kinds(schema: Mapping[str, JSON]) -> list[str]:
    """None where one is unknown: who knows what else would fit."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list | tuple) else [kind]
    known = [one for one in kinds if isinstance(one, str) and one in TYPES]
    return known if len(known) == len(kinds) else []


def _strings(listed: JSON) -> list[str]:
    given = listed if isinstance(listed, list | tuple) else ()
    return [one for one in given if isinstance(one, str)]


def _wanted(schema: Mapping[str, JSON]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list | tuple):
        return "one of " + ", ".join(f"`{value}`" for value in choices)
    return "of type " + " or ".join(_kinds(schema))
