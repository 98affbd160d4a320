"""YAML nodes with positions, between the text and the handbook's objects.

An unquoted scalar is null, true, false, a decimal number or text, without YAML's surprises (``no``
is false, ``017`` is 15). Calls that YAML cut at their commas are joined again: inside brackets,
``[covers(user, amount), open()]`` is three scalars to YAML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from sopilot.handbook.requirements import Scalar

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,299})")
_BROKEN = re.compile(r"-?(0|[1-9][0-9]{0,299})(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,4})?")
_WORDS: dict[str, Scalar] = {"": None, "null": None, "true": True, "false": False}

_SURPRISING = re.compile(
    r"(?i:yes|no|on|off|y|n|true|false|null|~|[-+]?\.(inf|nan)|"
    r"[-+]?[0-9][0-9_.:oxeabcdf+-]*|[-+]?\.[0-9]+|0x[0-9a-f_]+|<<|=)"
)

_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*")


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == "-" or "0" <= first <= "9":
        if _WHOLE.fullmatch(text):
            return int(text)
        if _BROKEN.fullmatch(text):
            value = float(text)
            if math.isfinite(value):
                return value
    return text


def is_surprising(text: str) -> bool:
    """Text here, but something else to another YAML reader or to a person in a hurry."""
    if not isinstance(resolve(text), str):
        return False
    return _SURPRISING.fullmatch(text) is not None or _DATE.fullmatch(text) is not None


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

    def spot(self, offset: int) -> Spot:
        """The place of a character of ``text``; the node's own where its source is folded or
        escaped."""
        quotes = len(self.style)
        plain = self.style in ("", "'", '"')
        if plain and self.end - self.start == len(self.text) + 2 * quotes:
            return Spot(self.line, self.column + quotes + offset)
        return Spot(self.line, self.column)


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


def _is_plain(node: Node) -> TypeGuard[ScalarNode]:
    return isinstance(node, ScalarNode) and not node.style


def _is_open(node: Node) -> TypeGuard[ScalarNode]:
    """Whether a parenthesis of an unquoted scalar still waits for its partner."""
    return _is_plain(node) and "(" in node.text and node.text.count("(") > node.text.count(")")


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.is_empty


def _joined(first: ScalarNode, last: ScalarNode) -> ScalarNode:
    return replace(first, text=f"{first.text}, {last.text}", end=last.end)


def _with(before: Node, item: ScalarNode) -> Node | None:
    """``before`` joined with the next item if a parenthesis of it is open. A pair in braces is
    never joined: its mapping starts before its key."""
    if _is_open(before):
        return _joined(before, item)
    if isinstance(before, MapNode) and len(before.pairs) == 1:
        ((key, value),) = before.pairs
        bare = (before.line, before.column) == (key.line, key.column)
        if bare and _is_open(value):
            return replace(before, pairs=((key, _joined(value, item)),))
    return None


def join_items(items: Sequence[Node]) -> list[Node]:
    done: list[Node] = []
    for item in items:
        if done and _is_plain(item) and (longer := _with(done[-1], item)):
            done[-1] = longer
        else:
            done.append(item)
    return done


def join_pairs(pairs: Sequence[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """The same for a mapping in braces, where the pieces look like keys without a value."""
    done: list[tuple[Node, Node]] = []
    for key, value in pairs:
        if done and _is_plain(key):
            before, held = done[-1]
            if _is_open(before) and _is_empty(held):
                done[-1] = (_joined(before, key), value)
                continue
            if _is_open(held) and _is_empty(value):
                done[-1] = (before, _joined(held, key))
                continue
        done.append((key, value))
    return done
