"""Whether a call's arguments fit the tool's schema, said so that a model can correct them.

Only what a provider's schema promises at the top level: required names, unknown
names, types, enumerations. The tool itself judges the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.diagnostics import did_you_mean
from sopilot.session.protocols import JSON, ToolSchema

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def argument_problem(tool: ToolSchema, arguments: Mapping[str, JSON]) -> str:
    """What is wrong, or nothing."""
    properties = tool.parameters.get("properties", {})
    closed = tool.parameters.get("additionalProperties", True) is False
    for name, value in arguments.items():
        schema = properties.get(name)
        if schema is None:
            if closed:
                return f"`{tool.name}` has no argument `{name}`; {did_you_mean(name, properties)}"
        elif not _fits(schema, value):
            return f"the argument `{name}` of `{tool.name}` must be {_wanted(schema)}"
    missing = [name for name in tool.parameters.get("required", ()) if name not in arguments]
    if missing:
        return f"`{tool.name}` also needs {', '.join(f'`{name}`' for name in missing)}"
    return ""


def _fits(schema: JSON, value: JSON) -> bool:
    if not isinstance(schema, Mapping):
        return True
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = _kinds(schema)
    if not kinds:
        return True
    return any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in kinds
    )


def _kinds(schema: Mapping[str, JSON]) -> list[str]:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return [one for one in kinds if isinstance(one, str)] if all(k in _TYPES for k in kinds) else []


def _wanted(schema: Mapping[str, JSON]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    return "of type " + " or ".join(_kinds(schema))
