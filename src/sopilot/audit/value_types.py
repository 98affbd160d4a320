"""Whether a value is what an input declares. Written apart from the machine's own check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from sopilot.values.json import JSON, same
from sopilot.values.patterns import UnreadablePattern, has_form

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
    if not _within(value, schema):
        return False
    if isinstance(value, dict):
        return _fields(value, schema)
    inner = schema.get("items")
    if isinstance(value, list) and isinstance(inner, Mapping):
        return all(has_type(one, inner) for one in value)
    return True


def _within(value: JSON, schema: Mapping[str, object]) -> bool:
    """Bounds of a number, of a text's or list's length, and a text's form."""
    if _number(value):
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        if (_number(above) and value <= above) or (_number(below) and value >= below):
            return False
        measured, least, most = value, "minimum", "maximum"
    elif isinstance(value, str | list):
        kind = "Length" if isinstance(value, str) else "Items"
        measured, least, most = len(value), f"min{kind}", f"max{kind}"
    else:
        return True
    low, high = schema.get(least), schema.get(most)
    if (_number(low) and measured < low) or (_number(high) and measured > high):
        return False
    form = schema.get("pattern")
    if not isinstance(value, str) or not isinstance(form, str):
        return True
    try:
        return has_form(value, form)
    except UnreadablePattern:
        return False


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


def _number(value: object) -> TypeGuard[float]:
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
