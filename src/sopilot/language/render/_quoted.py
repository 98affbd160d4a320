"""Text that knows which of its parts are quotations of the SOP's own sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from sopilot.language.frozen import frozen


class Quote(NamedTuple):
    """``text[start:end]`` quotes ``sentence``; ``owner`` is the action or function it binds."""

    start: int
    end: int
    sentence: str
    owner: str


_Placed = tuple[int, int, str, str]
"""A quotation before anybody asks for it: most texts are only read."""


@frozen
class Rendered:
    """``own`` quotations, and ``parts`` that stand in it with theirs, each at its ``places``."""

    text: str
    own: tuple[_Placed, ...] = ()
    parts: tuple[Rendered, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """By place."""
        found = [Quote(*one) for one in self.own]
        for start, part in zip(self.places, self.parts, strict=True):
            for first, last, sentence, owner in part.quotes:
                found.append(Quote(start + first, start + last, sentence, owner))
        return tuple(sorted(found) if self.parts else found)


def below(head: str, parts: Sequence[Rendered]) -> Rendered:
    """The parts below a head, each behind an empty line."""
    texts = [head, *[part.text for part in parts]]
    places = [end + number for number, end in enumerate(accumulate(map(len, texts)), 1)]
    return Rendered("\n".join(texts), (), tuple(parts), tuple(places[:-1]))


class Writer:
    """Builds a ``Rendered``. Sentences go in as they are: nothing indents or wraps them."""

    __slots__ = ("_included", "_length", "_parts", "_places", "_quotes")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._quotes: list[_Placed] = []
        self._included: list[Rendered] = []
        self._places: list[int] = []
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

    def around(self, before: str, sentence: str, owner: str, after: str) -> None:
        """A quotation with what stands before and behind it."""
        start = self._length + len(before)
        end = start + len(sentence)
        self._parts.append(before + sentence + after)
        self._length = end + len(after)
        self._quotes.append((start, end, sentence, owner))

    def include(self, rendered: Rendered) -> None:
        """Text that was rendered before, with its quotations."""
        self._included.append(rendered)
        self._places.append(self._length)
        self.write(rendered.text)

    def finish(self) -> Rendered:
        return Rendered(
            "".join(self._parts),
            tuple(self._quotes),
            tuple(self._included),
            tuple(self._places),
        )
