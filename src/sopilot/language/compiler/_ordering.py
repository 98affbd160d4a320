"""Prerequisite order inside unordered conjunctions.

In:  a tree whose gates may stand after the checks that need them.
Out: the same tree, the children of every ``All`` stably sorted so that a gate
     that the tree has anyway comes before the checks whose verifiers need it.
     ``InOrder`` keeps the author's order.
"""

from __future__ import annotations

from sopilot.language.compiler._guards import Guard, GuardClosure
from sopilot.language.handbook import All, InOrder, Leaf, Tree, leaves, with_children


def order_by_prerequisite(tree: Tree, guards: tuple[Guard, ...], closure: GuardClosure) -> Tree:
    wanted = {guard.leaf for guard in guards if not guard.hoisted}
    return _ordered(tree, wanted, closure) if wanted else tree


def _ordered(tree: Tree, gates: set[Leaf], closure: GuardClosure) -> Tree:
    if isinstance(tree, Leaf):
        return tree
    children = tuple(_ordered(child, gates, closure) for child in tree.children)
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
        for leaf in leaves(child):
            for gate in closure.needed(leaf):
                source = provider.get(gate)
                if source is not None and source != position:
                    before[position].add(source)
    ordered: list[Tree] = []
    entered: set[int] = set()

    def place(position: int) -> None:
        # A cycle between children keeps the source order: there is no right one.
        if position in entered:
            return
        entered.add(position)
        for earlier in sorted(before[position]):
            place(earlier)
        ordered.append(children[position])

    for position in range(len(children)):
        place(position)
    return tuple(ordered)


def _opened(tree: Tree, gates: set[Leaf]) -> list[Leaf]:
    """The gates that the child opens on every path on which it holds."""
    if isinstance(tree, Leaf):
        return [tree] if tree in gates else []
    if isinstance(tree, All | InOrder):
        return [gate for child in tree.children for gate in _opened(child, gates)]
    return []
