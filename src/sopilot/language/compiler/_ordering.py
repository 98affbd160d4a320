"""Prerequisite order inside unordered conjunctions.

In:  a tree whose gates may stand after the checks that need them.
Out: the same tree, the children of every ``All`` stably sorted so that a gate
     that the tree has anyway comes before the checks whose verifiers need it.
     ``InOrder`` keeps the author's order.
"""

from __future__ import annotations

from sopilot.language.compiler._guards import CONJUNCTION, Guard, GuardClosure
from sopilot.language.handbook import All, Leaf, Tree, leaves, with_children


def order_by_prerequisite(tree: Tree, guards: tuple[Guard, ...], closure: GuardClosure) -> Tree:
    wanted = {guard.leaf for guard in guards if not guard.hoisted}
    return _ordered(tree, wanted, closure) if wanted else tree


def _ordered(tree: Tree, gates: set[Leaf], closure: GuardClosure) -> Tree:
    if isinstance(tree, Leaf):
        return tree
    children = tuple([_ordered(child, gates, closure) for child in tree.children])
    if isinstance(tree, All):
        children = _sorted(children, gates, closure)
    return with_children(tree, children)


def _sorted(
    children: tuple[Tree, ...], gates: set[Leaf], closure: GuardClosure
) -> tuple[Tree, ...]:
    provider: dict[Leaf, int] = {}
    for position, child in enumerate(children):
        for gate in _opened(child, gates):
            provider.setdefault(gate, position)
    if not provider:
        return children
    before: list[set[int]] = [set() for _ in children]
    for position, child in enumerate(children):
        for leaf in (child,) if isinstance(child, Leaf) else leaves(child):
            for gate in closure.needed(leaf):
                source = provider.get(gate)
                if source is not None and source != position:
                    before[position].add(source)
    if not any(before):
        return children
    order: dict[int, None] = {}
    seen: set[int] = set()
    for position in range(len(children)):
        _place(position, before, seen, order)
    return tuple([children[position] for position in order])


def _place(position: int, before: list[set[int]], seen: set[int], order: dict[int, None]) -> None:
    # A cycle between children keeps the source order: there is no right one.
    if position in seen:
        return
    seen.add(position)
    for earlier in sorted(before[position]):
        _place(earlier, before, seen, order)
    order[position] = None


def _opened(tree: Tree, gates: set[Leaf]) -> list[Leaf]:
    """The gates that the child opens on every path on which it holds."""
    if isinstance(tree, Leaf):
        return [tree] if tree in gates else []
    if isinstance(tree, CONJUNCTION):
        return [gate for child in tree.children for gate in _opened(child, gates)]
    return []
