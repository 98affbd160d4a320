"""Guard closure: which gates must be open before a tree can be verified (Eq. 2).

In:  a tree, and for each predicate the recipe that was chosen to verify it.
Out: ``H_T``, the least set of gates that contains every gate required by a verifier of the tree
     or by the opening of a gate in the set; in prerequisite order.

    all[funds_cover(u, a)]          read_balance requires logged_in(u)
    → in_order[logged_in(u), all[funds_cover(u, a)]]

Gates that the tree has anyway aren't hoisted. ``order_by_prerequisite`` sorts the children of
every ``All`` so that such a gate comes before the checks that need it; ``InOrder`` keeps the
author's order. ``unopened_gates`` reports checks whose gate may still be shut:

    in_order[funds_cover(u, a), logged_in(u)]        the gate comes later
    in_order[any[logged_in(u), known(u)], funds_cover(u, a)]    the gate may stay shut
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sopilot.handbook.model import Action, Predicate, Recipe
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    InOrder,
    Leaf,
    Tree,
    leaves,
    negate,
    plain_binding,
    substitute,
    substitute_binding,
    with_children,
)
from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake

CONJUNCTION = (All, InOrder)

Chosen = Callable[[str], Recipe]
"""Predicate → the recipe that verifies it."""


def required_gates(requires: Tree, predicates: Mapping[str, Predicate]) -> tuple[Leaf, ...]:
    """The gates that a requirement wants open on every path, in source order."""
    if isinstance(requires, Leaf):
        # Don't open a gate that must be shut.
        return (requires,) if requires.wanted and predicates[requires.predicate].is_gate else ()
    if isinstance(requires, CONJUNCTION):
        result: dict[Leaf, None] = {}
        for child in requires.children:
            for leaf in required_gates(child, predicates):
                result.setdefault(leaf)
        return tuple(result)
    return ()


@dataclass(frozen=True, slots=True)
class Guard:
    """A gate in ``H_T``, the action that needs it and the leaf it was needed for."""

    leaf: Leaf
    action: str
    needed_by: Leaf
    hoisted: bool


@dataclass(slots=True)
class GuardClosure:
    """The closure for one set of actions and predicates; results are kept per leaf."""

    actions: Mapping[str, Action]
    predicates: Mapping[str, Predicate]
    chosen: Chosen
    same: dict[str, Leaf] = field(default_factory=dict)
    """Key → the first leaf with that key."""
    _of_leaf: dict[str, tuple[tuple[Leaf, str], ...]] = field(default_factory=dict)
    _needed: dict[str, frozenset[Leaf]] = field(default_factory=dict)

    def direct(self, leaf: Leaf) -> tuple[tuple[Leaf, str], ...]:
        """The gates that verifying or opening this leaf needs, each with the action."""
        known = self._of_leaf.get(leaf.key)
        if known is None:
            needed: dict[Leaf, str] = {}
            for action, demanded in self._demanded(leaf):
                for gate in required_gates(demanded, self.predicates):
                    needed.setdefault(self.same.setdefault(gate.key, gate), action)
            known = self._of_leaf[leaf.key] = tuple(needed.items())
        return known

    def needed(self, leaf: Leaf) -> frozenset[Leaf]:
        """Every gate that must be open for this leaf, directly or through other gates."""
        known = self._needed.get(leaf.key)
        if known is None:
            leafs: set[Leaf] = set()
            pending = [leaf]
            while pending:
                for gate, _ in self.direct(pending.pop()):
                    if gate not in leafs:
                        leafs.add(gate)
                        pending.append(gate)
            known = self._needed[leaf.key] = frozenset(leafs)
        return known

    def _demanded(self, leaf: Leaf) -> Iterator[tuple[str, Tree]]:
        """What the calls that verify or open the leaf require, about its arguments."""
        opening = self.predicates[leaf.predicate].established_by
        for call in self.chosen(leaf.predicate) if opening is None else (opening,):
            requires = self.actions[call.action].requires
            if requires != NOTHING:
                arguments = dict(leaf.arguments)
                terms = dict(substitute_binding(plain_binding(call.arguments), arguments))
                yield call.action, substitute(requires, terms)

    def close(self, tree: Tree) -> tuple[Guard, ...]:
        """``H_T`` in prerequisite order; ``hoisted`` tells the gates that ``L(T)`` lacks."""
        in_tree = {leaf.key: leaf for leaf in leaves(tree)}
        closed: dict[Leaf, Guard] = {}
        for leaf in in_tree.values():
            if self.direct(leaf):
                self._visit(leaf, in_tree, closed, [])
        return tuple(closed.values())

    def _visit(
        self, leaf: Leaf, in_tree: Mapping[str, Leaf], closed: dict[Leaf, Guard], path: list[Leaf]
    ) -> None:
        """``path`` are the gates that wait for this leaf."""
        for gate, action in self.direct(leaf):
            if gate in closed:
                continue
            if gate in path:
                raise UserMistake([_circular([*path[path.index(gate) :], gate])])
            self._visit(gate, in_tree, closed, [*path, gate])
            closed[gate] = Guard(gate, action, leaf, hoisted=gate.key not in in_tree)

    def unchecked(self, in_tree: Collection[Leaf]) -> tuple[tuple[str, Leaf], ...]:
        """Requirements of the verifiers of these leaves that are neither hoisted nor among them.

        Only gates that must be open on every path are hoisted: a verifier may serve only one of
        several options. The author gets a warning about other requirements.
        """
        open_requirements: dict[tuple[str, Leaf], None] = {}
        for leaf in in_tree:
            for action, demanded in self._demanded(leaf):
                # A gate that may only be opened while it is shut has no prerequisite in that.
                known = (*required_gates(demanded, self.predicates), negate(leaf), *in_tree)
                missing = [needed for needed in leaves(demanded) if needed not in known]
                open_requirements |= dict.fromkeys((action, needed) for needed in missing)
        return tuple(open_requirements)


def _circular(cycle: list[Leaf]) -> Diagnostic:
    names = " → ".join(f"`{leaf.predicate}`" for leaf in cycle)
    return Diagnostic(
        "circular-guards",
        f"these gates can never be opened, because each needs the next: {names}",
        Place(path=cycle[0].predicate),
        "remove one `requires` on an action that establishes them",
    )


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
    # A cycle between children keeps the source order.
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
    met: set[Leaf] = set()
    unopened: dict[tuple[Leaf, Leaf], Unopened] = {}

    def opened_by(part: Tree, opened: frozenset[Leaf]) -> frozenset[Leaf]:
        """The gates that are open after the part, if it holds."""
        if isinstance(part, Leaf):
            for gate, action in closure.direct(part):
                if gate not in opened:
                    later = gate not in met
                    unopened.setdefault((part, gate), Unopened(part, gate, action, later=later))
            if part not in gates:
                return opened
            met.add(part)
            return opened | {part}
        if isinstance(part, CONJUNCTION):
            for child in part.children:
                opened = opened_by(child, opened)
            return opened
        return frozenset.intersection(*[opened_by(child, opened) for child in part.children])

    opened_by(tree, frozenset())
    return tuple(unopened.values())
