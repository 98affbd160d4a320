"""Whether a value is what an input declares. Written apart from the machine's own check."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.runtime.vm.values import JSON, same

NUL = "\0"


def has_type(value: JSON, schema: Mapping[str, object]) -> bool:
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named
    if isinstance(names, list | tuple) and not any(_named(value, name) for name in names):
        return False
    if isinstance(value, str) and NUL in value:
        return False
    if "const" in schema and not same(value, schema["const"]):
        return False
    listed = schema.get("enum")
    if isinstance(listed, list | tuple) and not any(same(value, one) for one in listed):
        return False
    if isinstance(value, dict):
        return _fields(value, schema)
    inner = schema.get("items")
    if isinstance(value, list) and isinstance(inner, Mapping):
        return all(has_type(one, inner) for one in value)
    return True


def _named(value: JSON, name: object) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _number(value) and (isinstance(value, int) or value.is_integer())
        case "number":
            return _number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    return True


def _number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fields(value: dict[str, JSON], schema: Mapping[str, object]) -> bool:
    required = schema.get("required")
    if isinstance(required, list | tuple) and not all(name in value for name in required):
        return False
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    closed = schema.get("additionalProperties") is False
    for name, item in value.items():
        inner = known.get(name)
        if isinstance(inner, Mapping):
            if not has_type(item, inner):
                return False
        elif closed and name not in known:
            return False
    return True
