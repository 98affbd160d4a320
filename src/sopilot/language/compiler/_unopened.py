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

from sopilot.language.compiler._guards import CONJUNCTION, Guard, GuardClosure
from sopilot.language.handbook import Leaf, Tree


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
    search = _Search(frozenset(guard.leaf for guard in guards), closure)
    search.walk(tree, frozenset())
    return tuple(search.found.values())


class _Search:
    def __init__(self, gates: frozenset[Leaf], closure: GuardClosure) -> None:
        self.found: dict[tuple[Leaf, Leaf], Unopened] = {}
        self._gates = gates
        self._closure = closure
        self._met: set[Leaf] = set()

    def walk(self, tree: Tree, opened: frozenset[Leaf]) -> frozenset[Leaf]:
        """What is open after the tree, if it holds."""
        if isinstance(tree, Leaf):
            for gate, action in self._closure.direct(tree):
                if gate not in opened:
                    later = gate not in self._met
                    self.found.setdefault((tree, gate), Unopened(tree, gate, action, later=later))
            if tree not in self._gates:
                return opened
            self._met.add(tree)
            return opened | {tree}
        if isinstance(tree, CONJUNCTION):
            for child in tree.children:
                opened = self.walk(child, opened)
            return opened
        return frozenset.intersection(*[self.walk(child, opened) for child in tree.children])
