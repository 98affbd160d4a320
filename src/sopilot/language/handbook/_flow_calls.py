"""Puts calls back together that YAML cut at their commas.

``[covers(user, amount), open()]`` is three scalars to YAML: inside brackets a
comma ends an unquoted one. People write it nevertheless, and it has only one
sensible reading, so neighbours are joined until the parentheses balance, behind a
key without braces of its own (``[not: covers(user, amount)]``) as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from sopilot.language.handbook.nodes import MapNode, Node, ScalarNode


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
    """``before`` and what follows it, if it waits for that. A pair in braces does not: its
    mapping starts before its key."""
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
