"""The part of JSON Schema that says what a value is: artifacts and arguments are read by it."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.runtime.vm.values import JSON

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def violation(value: JSON, schema: Mapping[str, object], path: str = "") -> str | None:
    """What is wrong first, with its place, or ``None``. Keywords it does not know are ignored."""
    where = path or "the content"
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(names, list | tuple) and not any(_is(value, name) for name in names):
        return f"{where} must be of type {' or '.join(str(name) for name in names)}"
    if isinstance(value, str) and "\0" in value:
        return f"{where} has a NUL character in it"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{where} has the wrong value"
    options = schema.get("enum")
    if isinstance(options, list | tuple) and not any(_same(value, option) for option in options):
        return f"{where} is not one of the values it may have"
    if isinstance(value, dict):
        return _object_violation(value, schema, path)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        for index, item in enumerate(value):
            problem = violation(item, items, f"{path}[{index}]")
            if problem is not None:
                return problem
    return None


def _object_violation(
    value: dict[str, JSON], schema: Mapping[str, object], path: str
) -> str | None:
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in value:
            return f"`{name}` is missing" + (f" in {path}" if path else "")
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    for name, item in value.items():
        inner = known.get(name)
        if isinstance(inner, Mapping):
            problem = violation(item, inner, f"{path}.{name}" if path else name)
            if problem is not None:
                return problem
        elif name not in known and schema.get("additionalProperties") is False:
            return f"`{name}` is not expected" + (f" in {path}" if path else "")
    return None


def _is(value: JSON, name: object) -> bool:
    types = _TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (
        name == "integer" and isinstance(value, float) and value.is_integer()
    )


def _same(left: JSON, right: object) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
