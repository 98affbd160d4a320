"""What a tool takes, in a line: names with types, choices and shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

_DEEPEST: Final = 3
_MOST_CHOICES: Final = 12


def signature(name: str, parameters: Mapping[str, object]) -> str:
    """``book(room: string, nights: integer, paid?: boolean)`` of a JSON Schema."""
    return f"{name}({_fields(parameters, 0)})"


def shape(schema: object, depth: int = 0) -> str:
    """A JSON Schema as a reader would write it: a type, choices, ``[string]``, ``{a: number}``."""
    if not isinstance(schema, Mapping):
        return "any"
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        shown = [json.dumps(one, ensure_ascii=False) for one in choices[:_MOST_CHOICES]]
        return " | ".join([*shown, "…"] if len(choices) > _MOST_CHOICES else shown)
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, Sequence) and not isinstance(several, str) and several:
        return " | ".join(dict.fromkeys(shape(one, depth) for one in several))
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return _of_kind(kinds, schema, depth)
    if isinstance(kinds, Sequence) and kinds:
        return " | ".join(_of_kind(str(kind), schema, depth) for kind in kinds)
    return "any"


def _of_kind(kind: str, schema: Mapping[str, object], depth: int) -> str:
    if depth < _DEEPEST and kind == "object" and schema.get("properties"):
        return f"{{{_fields(schema, depth + 1)}}}"
    if depth < _DEEPEST and kind == "array" and schema.get("items"):
        return f"[{shape(schema['items'], depth + 1)}]"
    return kind


def _fields(schema: Mapping[str, object], depth: int) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed = required if isinstance(required, list | tuple) else ()
    return ", ".join(
        f"{name}{'' if name in needed else '?'}: {shape(one, depth)}"
        for name, one in properties.items()
    )
