"""Whether a call's arguments fit the tool's schema, said so that a model can correct them.

Only what a provider's schema promises: required names, unknown names, types, enumerations, and
the same inside of objects and lists. The tool itself judges the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.render.signatures import shape
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
        named = (
            f"`{name}` (`{shape(properties[name])}`)" if name in properties else f"`{name}`"
            for name in missing
        )
        return f"`{tool.name}` also needs {', '.join(named)}"
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
        inside = [(properties.get(name), one) for name, one in value.items()]
    elif isinstance(value, list):
        inside = [(items, one) for one in value]
    else:
        return True
    return all(not isinstance(one, Mapping) or _fits(one, held) for one, held in inside)


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
    if schema.get("properties") or schema.get("items"):
        return f"`{shape(schema)}`"
    return "of type " + " or ".join(_kinds(schema))
