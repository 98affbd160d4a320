"""Text that knows which of its parts are quotations of the SOP's own sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Quote(NamedTuple):
    """``text[start:end]`` quotes ``sentence``; ``owner`` is the action or function it binds."""

    start: int
    end: int
    sentence: str
    owner: str


@dataclass(frozen=True, slots=True)
class Rendered:
    text: str
    quotes: tuple[Quote, ...] = ()


class Writer:
    """Builds a ``Rendered``. Sentences go in as they are: nothing indents or wraps them."""

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

    def include(self, rendered: Rendered) -> None:
        """Text that was rendered before, with its quotations."""
        start = self._length
        self.write(rendered.text)
        for first, last, sentence, owner in rendered.quotes:
            self._quotes.append(Quote(start + first, start + last, sentence, owner))

    def finish(self) -> Rendered:
        return Rendered("".join(self._parts), tuple(self._quotes))
