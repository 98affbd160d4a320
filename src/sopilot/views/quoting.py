"""Text that knows which of its parts quote the SOP; and the shape of a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple


class Quote(NamedTuple):
    """``text[start:end]`` quotes ``sentence``; ``owner`` is the action or function it binds."""

    start: int
    end: int
    sentence: str
    owner: str


_Placed = tuple[int, int, str, str]
"""A quotation before anybody asks for it: most texts are only read."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """``own`` quotations, and ``parts`` that stand in it with theirs, each at its ``places``."""

    text: str
    own: tuple[_Placed, ...] = ()
    parts: tuple[Rendered, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """By place."""
        results = [Quote(*item) for item in self.own]
        for start, part in zip(self.places, self.parts, strict=True):
            for first, last, sentence, owner in part.quotes:
                results.append(Quote(start + first, start + last, sentence, owner))
        return tuple(sorted(results) if self.parts else results)


def below(head: str, parts: Sequence[Rendered]) -> Rendered:
    """The parts below a head, each behind an empty line."""
    texts = [head, *[part.text for part in parts]]
    places = [end + number for number, end in enumerate(accumulate(map(len, texts)), 1)]
    return Rendered("\n".join(texts), (), tuple(parts), tuple(places[:-1]))


class Writer:
    """Builds a ``Rendered``. Sentences go in as they are: nothing indents or wraps them."""

    __slots__ = ("_length", "_parts", "_quotes")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._quotes: list[_Placed] = []
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
        self._quotes.append((start, self._length, sentence, owner))

    def finish(self) -> Rendered:
        return Rendered("".join(self._parts), tuple(self._quotes))


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
