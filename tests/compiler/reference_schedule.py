"""The independent reference: truth, schedule and guard closure straight from the paper.

Shares no code with the compiler. Trees here are plain tuples:
``("leaf", predicate, arguments, wanted)`` or ``(operator, children)`` with the
paper's operator names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

RefTree = tuple[Any, ...]
Judge = Callable[[tuple[str, Any]], bool]


def truth(tree: RefTree, judge: Judge) -> bool:
    """Eq. 1."""
    if tree[0] == "leaf":
        return judge((tree[1], tree[2])) is bool(tree[3])
    values = [truth(child, judge) for child in tree[1]]
    return all(values) if tree[0] in ("and", "chain") else any(values)


def walk(tree: RefTree, judge: Judge, seen: list[tuple[str, Any]], complete: bool = False) -> bool:
    """Evaluate on the paper's schedule, noting every predicate that is asked.

    Conjunctions stop at the first failure, but not inside an ``or`` option;
    ``or`` asks every option; ``gate`` stops at the first success, everywhere.
    """
    operator = tree[0]
    if operator == "leaf":
        key = (tree[1], tree[2])
        seen.append(key)
        return judge(key) is bool(tree[3])
    if operator == "or":
        values = [walk(child, judge, seen, True) for child in tree[1]]
        return any(values)
    if operator == "gate":
        return any(walk(child, judge, seen, complete) for child in tree[1])
    if complete:
        values = [walk(child, judge, seen, True) for child in tree[1]]
        return all(values)
    return all(walk(child, judge, seen) for child in tree[1])


def leaf_set(tree: RefTree) -> set[tuple[str, Any, bool]]:
    return set(_leaves(tree))


def _leaves(tree: RefTree) -> Iterator[tuple[str, Any, bool]]:
    if tree[0] == "leaf":
        yield (tree[1], tree[2], tree[3])
    else:
        for child in tree[1]:
            yield from _leaves(child)


def least_closure(start: set[Any], needs: Callable[[Any], set[Any]]) -> set[Any]:
    """The least fixed point by brute force: iterate F from the empty set."""
    current: set[Any] = set()
    while True:
        larger: set[Any] = set()
        for item in start | current:
            larger |= needs(item)
        if larger == current:
            return current
        current = larger
