"""Frame factoring: no function checks more than seven things.

In:  a simplified tree.
Out: a plan whose functions stay within the leaf budget. Heavy subtrees become functions, and long
     lists are cut into runs; both keep the order and the value. A ``first`` inside an
     evidence-complete option always becomes a function, so that every result in a condition is
     bound. A part with its own ``otherwise`` stays in place, since a group only returns true or
     false; many of them may exceed the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sopilot.handbook.requirements import (
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Tree,
    every_otherwise,
    leaves,
    names_in,
    otherwise_of,
)

LEAF_BUDGET = 7


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A call of a factored function; stands in a plan where its subtree stood."""

    name: str
    body: Plan
    complete: bool
    parameters: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True, eq=False)
class FactorNode:
    """An operator over leaves, groups and further operators, with its own ``otherwise``."""

    operator: type
    children: tuple[Plan, ...]
    otherwise: str = ""


Plan = Leaf | FactorNode | Group
Naming = Callable[[Tree], str]
_Keys = frozenset[object]
_Part = tuple[Tree, Plan, _Keys]


class Factoring:
    def __init__(self, name: Naming) -> None:
        self._name = name
        self.groups: list[Group] = []

    def plan(self, tree: Tree) -> Plan:
        plan, _ = self._factor(tree, complete=False)
        return plan

    def _factor(self, tree: Tree, *, complete: bool) -> tuple[Plan, _Keys]:
        if isinstance(tree, Leaf):
            return tree, frozenset((tree.question,))
        inside = complete or isinstance(tree, AnyOf)
        # A check and its negation ask the same question, so they count once.
        parts: list[_Part] = [
            (child, child, frozenset((child.question,)))
            if isinstance(child, Leaf)
            else (child, *self._factor(child, complete=inside))
            for child in tree.children
        ]
        kind = type(tree)
        while len(parts) > LEAF_BUDGET:
            shorter = self._cut(kind, parts, inside)
            if len(shorter) == len(parts):
                break
            parts = shorter
        keys = self._lighten(parts, inside)
        node = FactorNode(kind, tuple([plan for _, plan, _ in parts]), otherwise_of(tree))
        if complete and kind is First:
            group = self._group(tree, node, complete, "a `first` inside an `any`")
            return group, frozenset((group,))
        return node, keys

    def _lighten(self, parts: list[_Part], complete: bool) -> _Keys:
        """Move the heaviest compound children out until the rest fits the budget."""
        keys = _union(parts)
        if len(keys) <= LEAF_BUDGET:
            return keys
        heavy = sorted(
            (i for i, (_, plan, _) in enumerate(parts) if isinstance(plan, FactorNode)),
            key=lambda i: (-len(parts[i][2]), i),
        )
        for position in heavy:
            tree, plan, held = parts[position]
            if every_otherwise(tree) not in ([], [otherwise_of(tree)]) or len(held) == 1:
                continue
            group = self._group(
                tree, plan, complete, f"more than {LEAF_BUDGET} checks in one frame"
            )
            factor_node: Plan = group
            if otherwise_of(tree):
                factor_node = FactorNode(type(tree), (group,), otherwise_of(tree))
            parts[position] = (tree, factor_node, frozenset((group,)))
            keys = _union(parts)
            if len(keys) <= LEAF_BUDGET:
                break
        return keys

    def _cut(self, kind: type, parts: list[_Part], complete: bool) -> list[_Part]:
        """Runs within the budget, each a function of the same operator."""
        runs: list[_Part] = []
        run: list[_Part] = []
        held: set[object] = set()
        for part in parts:
            if every_otherwise(part[0]):
                runs += [self._run(kind, run, complete), part] if run else [part]
                run, held = [], set()
                continue
            if run and len(held | part[2]) > LEAF_BUDGET:
                runs.append(self._run(kind, run, complete))
                run, held = [], set()
            run.append(part)
            held |= part[2]
        if run:
            runs.append(self._run(kind, run, complete))
        return runs

    def _run(self, kind: type, run: list[_Part], complete: bool) -> _Part:
        if len(run) == 1 and not isinstance(run[0][1], FactorNode):
            return run[0]
        tree: Tree = kind(tuple(part for part, _, _ in run)) if len(run) > 1 else run[0][0]
        body = FactorNode(kind, tuple(plan for _, plan, _ in run)) if len(run) > 1 else run[0][1]
        group = self._group(tree, body, complete, f"a list of more than {LEAF_BUDGET} checks")
        return tree, group, frozenset((group,))

    def _group(self, tree: Tree, body: Plan, complete: bool, because: str) -> Group:
        group = Group(self._name(tree), body, complete, names_in(tree), because)
        self.groups.append(group)
        return group


def _union(parts: list[_Part]) -> _Keys:
    return frozenset().union(*[keys for _, _, keys in parts])


_PREFIX: dict[type, str] = {
    All: "all_of",
    AnyOf: "any_of",
    InOrder: "in_order",
    First: "first_of",
}

_SHOWN = 2


class Names:
    """Function names of one program: the goal's, one a predicate, one a group."""

    def __init__(self, process: str, predicates: Collection[str]) -> None:
        self._process = process
        self._taken = dict.fromkeys((process, *predicates), 1)
        self._namesake = numbered(f"verify_{process}", self._taken)

    def rule(self, predicate: str) -> str:
        """The predicate's own name, unless the goal has it."""
        return self._namesake if predicate == self._process else predicate

    def group(self, tree: Tree) -> str:
        """``any_of_funds_cover_overdraft``, ``in_order_5_to_owns_account``: the last check stands
        for each alternative, and for many checks that must all hold."""
        checks = {leaf.question for leaf in leaves(tree)}
        assert not isinstance(tree, Leaf)  # which has a function already
        ends = [list(leaves(part))[-1:] for part in tree.children]
        words = [f"{'' if leaf.wanted else 'not_'}{leaf.predicate}" for end in ends for leaf in end]
        joint = isinstance(tree, All | InOrder) and len(checks) > _SHOWN
        if joint or len(words) > _SHOWN:
            words = [str(len(checks)), "to", words[-1]]
        return numbered("_".join([_PREFIX[type(tree)], *words]), self._taken)


def numbered(wanted: str, taken: dict[str, int]) -> str:
    """``name``, ``name_2``, ``name_3`` … in order of first use."""
    name = wanted
    while name in taken:
        taken[wanted] += 1
        name = f"{wanted}_{taken[wanted]}"
    taken[name] = 1
    return name
