"""YAML nodes with positions: what stands between the text and the handbook's objects."""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.language.handbook._scalars import resolve
from sopilot.language.handbook._tree import Scalar


@dataclass(frozen=True, slots=True)
class Spot:
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """``start`` and ``end`` are offsets into the source. ``style`` is the quote or block sign,
    empty for an unquoted scalar."""

    text: str
    style: str
    line: int
    column: int
    start: int
    end: int

    @property
    def value(self) -> Scalar:
        return self.text if self.style else resolve(self.text)

    @property
    def is_empty(self) -> bool:
        return not self.style and not self.text

    @property
    def one_line(self) -> bool:
        """Whether a character of ``text`` stands at its own distance from ``start``."""
        return self.style in ("", "'", '"') and self.end - self.start == len(self.text) + 2 * len(
            self.style
        )


@dataclass(frozen=True, slots=True)
class ListNode:
    items: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class MapNode:
    pairs: tuple[tuple[ScalarNode, Node], ...]
    line: int
    column: int


Node = ScalarNode | ListNode | MapNode
