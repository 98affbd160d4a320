"""Text that knows which of its parts quote the SOP; and the shape of a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple


class Quote(NamedTuple):
    """``text[start:end]`` quotes ``sentence``; ``owner`` is the action or function it binds."""

    start: int
    end: int
    sentence: str
    owner: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """``quotes`` by their place."""

    text: str
    quotes: tuple[Quote, ...] = ()


class Writer:
    """Builds a ``Rendered``. Sentences go in as they are: nothing indents or wraps them."""

    __slots__ = ("_length", "_parts", "_quotes")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._quotes: list[Quote] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def quote(self, sentence: str, owner: str) -> None:
        start = self._length
        self.write(sentence)
        self._quotes.append(Quote(start, self._length, sentence, owner))

    def finish(self) -> Rendered:
        return Rendered("".join(self._parts), tuple(self._quotes))


def below(head: str, parts: Sequence[Rendered]) -> Rendered:
    """The parts below a head, each behind an empty line."""
    text = head
    quotes: list[Quote] = []
    for part in parts:
        start = len(text) + 1
        text += f"\n{part.text}"
        quotes += [
            quote._replace(start=start + quote.start, end=start + quote.end)
            for quote in part.quotes
        ]
    return Rendered(text, tuple(quotes))


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
        shown = [json.dumps(choice, ensure_ascii=False) for choice in choices[:_MOST_CHOICES]]
        return " | ".join([*shown, "…"] if len(choices) > _MOST_CHOICES else shown)
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, Sequence) and not isinstance(several, str) and several:
        return " | ".join(dict.fromkeys(shape(item, depth) for item in several))
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
        f"{name}{'' if name in needed else '?'}: {shape(item, depth)}"
        for name, item in properties.items()
    )
