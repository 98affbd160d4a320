"""Guard closure: which gates must be open before a tree can be verified (Eq. 2).

In:  a tree, and for each predicate the recipe that was chosen to verify it.
Out: ``H_T``, the least set of gates that contains every gate required by a
     verifier of the tree and, again and again, every gate required to open one
     that it contains already; in prerequisite order.

    all[funds_cover(u, a)]          read_balance requires logged_in(u)
    → in_order[logged_in(u), all[funds_cover(u, a)]]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from sopilot.language.diagnostics import Diagnostic, Place, UserMistake
from sopilot.language.frozen import frozen
from sopilot.language.handbook import (
    NOTHING,
    Action,
    ActionCall,
    All,
    InOrder,
    Leaf,
    Predicate,
    Recipe,
    Tree,
    leaves,
    negate,
    plain_binding,
    substitute,
    substitute_binding,
)

CONJUNCTION = (All, InOrder)
Chosen = Callable[[str], Recipe]
"""Predicate → the recipe that verifies it."""


def required_gates(requires: Tree, predicates: Mapping[str, Predicate]) -> tuple[Leaf, ...]:
    """The gates that a requirement wants open on every path, in source order."""
    if isinstance(requires, Leaf):
        # A gate that must be shut is not opened to find that out.
        return (requires,) if requires.wanted and predicates[requires.predicate].is_gate else ()
    if isinstance(requires, CONJUNCTION):
        found: dict[Leaf, None] = {}
        for child in requires.children:
            for leaf in required_gates(child, predicates):
                found.setdefault(leaf)
        return tuple(found)
    return ()


@frozen
class Guard:
    """A gate in ``H_T``, the action that needs it and the leaf it was needed for."""

    leaf: Leaf
    action: str
    needed_by: Leaf
    hoisted: bool


class GuardClosure:
    """The closure for one set of actions and predicates; results are kept per leaf."""

    def __init__(
        self,
        actions: Mapping[str, Action],
        predicates: Mapping[str, Predicate],
        chosen: Chosen,
    ) -> None:
        self.same: dict[str, Leaf] = {}
        """For the key of a leaf, the one that was met first."""
        self._actions = actions
        self._predicates = predicates
        self._chosen = chosen
        self._by_action: dict[str, tuple[Leaf, ...]] = {}
        self._of_leaf: dict[str, tuple[tuple[Leaf, str], ...]] = {}
        self._needed: dict[str, frozenset[Leaf]] = {}
        self._left_out: dict[str, tuple[tuple[str, Leaf], ...]] = {}

    def direct(self, leaf: Leaf) -> tuple[tuple[Leaf, str], ...]:
        """The gates that verifying (or opening) this leaf needs, each with the action."""
        known = self._of_leaf.get(leaf.key)
        if known is None:
            known = self._of_leaf[leaf.key] = tuple(self._find(leaf))
        return known

    def needed(self, leaf: Leaf) -> frozenset[Leaf]:
        """Every gate that must be open for this leaf, through other gates too."""
        known = self._needed.get(leaf.key)
        if known is None:
            found: set[Leaf] = set()
            pending = [leaf]
            while pending:
                for gate, _ in self.direct(pending.pop()):
                    if gate not in found:
                        found.add(gate)
                        pending.append(gate)
            known = self._needed[leaf.key] = frozenset(found)
        return known

    def _find(self, leaf: Leaf) -> Iterable[tuple[Leaf, str]]:
        arguments = dict(leaf.arguments)
        found: dict[Leaf, str] = {}
        for call in self._calls(leaf.predicate):
            gates = self._gates_of(call.action)
            if not gates:
                continue
            terms = dict(substitute_binding(plain_binding(call.arguments), arguments))
            for gate in gates:
                bound = substitute(gate, terms)
                assert isinstance(bound, Leaf)
                found.setdefault(self.same.setdefault(bound.key, bound), call.action)
        return found.items()

    def _gates_of(self, action: str) -> tuple[Leaf, ...]:
        gates = self._by_action.get(action)
        if gates is None:
            requires = self._actions[action].requires
            gates = self._by_action[action] = required_gates(requires, self._predicates)
        return gates

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

    def unchecked(self, in_tree: Collection[Leaf]) -> Iterable[tuple[str, Leaf]]:
        """Requirements of the verifiers of these leaves that are neither hoisted nor among them.

        Only gates that must be open on every path are hoisted: a verifier may serve one
        option of several, and its requirement must not become everybody's. The author
        is told instead.
        """
        found: dict[tuple[str, Leaf], None] = {}
        for leaf in in_tree:
            left_out = self._left_out.get(leaf.key)
            if left_out is None:
                left_out = self._left_out[leaf.key] = tuple(self._not_hoisted(leaf))
            if left_out:
                found.update(dict.fromkeys([one for one in left_out if one[1] not in in_tree]))
        return found

    def _not_hoisted(self, leaf: Leaf) -> Iterable[tuple[str, Leaf]]:
        arguments = dict(leaf.arguments)
        for call in self._calls(leaf.predicate):
            requires = self._actions[call.action].requires
            if requires == NOTHING:
                continue
            terms = dict(substitute_binding(plain_binding(call.arguments), arguments))
            demanded = substitute(requires, terms)
            hoisted = required_gates(demanded, self._predicates)
            for needed in leaves(demanded):
                # A gate that is opened only where it is shut waits for nothing.
                if needed not in hoisted and needed != negate(leaf):
                    yield call.action, needed

    def _calls(self, name: str) -> tuple[ActionCall, ...]:
        """The calls that verify a predicate, or the one that opens a gate."""
        opening = self._predicates[name].established_by
        return self._chosen(name) if opening is None else (opening,)


def hoist(tree: Tree, guards: Iterable[Guard]) -> Tree:
    """``chain(topo(H_T \\ L(T)), T)``."""
    front = tuple(guard.leaf for guard in guards if guard.hoisted)
    return InOrder((*front, tree)) if front else tree


def _circular(cycle: list[Leaf]) -> Diagnostic:
    names = " → ".join(f"`{leaf.predicate}`" for leaf in cycle)
    return Diagnostic(
        "circular-guards",
        f"these gates can never be opened, each needs the next: {names}",
        Place(path=cycle[0].predicate),
        "remove one `requires` on an action that establishes them",
    )
