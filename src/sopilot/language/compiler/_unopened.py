"""Gates that may be shut when a check needs them.

In:  a tree in the order in which it is scheduled, all missing gates already in front.
Out: every check whose verifier needs a gate that is not open on every way to it.

The author wrote these gates into the tree, so they are not hoisted; where an order or an
alternative puts one in the wrong place, the author is told.

    in_order[funds_cover(u, a), logged_in(u)]        the gate comes later
    in_order[any[logged_in(u), known(u)], funds_cover(u, a)]    the gate may stay shut
"""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.language.compiler._guards import Guard, GuardClosure
from sopilot.language.handbook import All, InOrder, Leaf, Tree


@dataclass(frozen=True, slots=True)
class Unopened:
    """``later`` means that the gate only comes after the check; otherwise it stands in an
    ``any`` or ``first`` before it."""

    check: Leaf
    gate: Leaf
    action: str
    later: bool


def unopened_gates(
    tree: Tree, guards: tuple[Guard, ...], closure: GuardClosure
) -> tuple[Unopened, ...]:
    gates = {guard.leaf for guard in guards}
    found: dict[tuple[Leaf, Leaf], Unopened] = {}
    met: set[Leaf] = set()

    def walk(tree: Tree, opened: frozenset[Leaf]) -> frozenset[Leaf]:
        """What is open after the tree, if it holds."""
        if isinstance(tree, Leaf):
            for gate, action in closure.direct(tree):
                if gate not in opened:
                    found.setdefault(
                        (tree, gate), Unopened(tree, gate, action, later=gate not in met)
                    )
            if tree not in gates:
                return opened
            met.add(tree)
            return opened | {tree}
        if isinstance(tree, All | InOrder):
            for child in tree.children:
                opened = walk(child, opened)
            return opened
        return frozenset.intersection(*[walk(child, opened) for child in tree.children])

    walk(tree, frozenset())
    return tuple(found.values())
