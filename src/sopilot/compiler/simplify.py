"""Simplification, and dropping checks that earlier ones have settled.

``simplify`` changes neither truth nor schedule: it removes needless one-child nodes, empty
conjunctions, nested nodes of the same operator and repeated children.

    all[all[a, b], a, in_order[c]]  →  all[a, b, c]

``Settled`` drops rules that every path has required before, and options that contradict one of
those. Options of an ``any`` that no tool verifies owe no evidence: they are tried only if no other
option holds.

    in_order[a, first[not a, b]]  →  in_order[a, b]
    any[read, free]               →  first[read, free]

A shut gate settles nothing, since gates open while a process runs. Neither do checks before a
verifier that changes something. An option that wasn't met may be undecided: it can't hold later on,
and its opposite need not hold either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sopilot.compiler.prerequisites import CONJUNCTION
from sopilot.handbook.model import Action, Predicate
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Tree,
    leaves,
    otherwise_of,
    with_children,
)
from sopilot.messages.errors import mistake

Facts = dict[str, tuple[Leaf, bool]]
"""Question of a rule → the leaf that every path here has met, or (``False``) the opposite of a leaf
that wasn't met."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """``what`` needs no check because ``known`` came before it: it holds already, or it is
    ``impossible``."""

    what: Tree
    known: Leaf
    impossible: bool


@dataclass(slots=True)
class Settled:
    """``postpones``: options that no tool verifies wait for the others; else every option of an
    ``any`` is checked, as the paper's evidence-complete schedule does."""

    actions: Mapping[str, Action]
    predicates: Mapping[str, Predicate]
    postpones: bool = True
    dropped: list[Dropped] = field(default_factory=list)
    postponed: list[Tree] = field(default_factory=list)
    """Options that are tried only if no other option holds."""

    def tree(self, tree: Tree) -> Tree:
        """The tree that is left to check."""
        left = self._left(tree, {})
        assert not isinstance(left, Dropped)  # the first check of a tree contradicts nothing
        return self._postpone(left) if self.postpones else left

    def _postpone(self, tree: Tree) -> Tree:
        if isinstance(tree, Leaf):
            return tree
        children = tuple(
            [child if isinstance(child, Leaf) else self._postpone(child) for child in tree.children]
        )
        free: list[Tree] = []
        if isinstance(tree, AnyOf) and len(children) > 1:
            free = [child for child in children if self._owes_nothing(child)]
        if not free:
            return with_children(tree, children)
        owing = tuple(child for child in children if child not in free)
        alone = len(owing) == 1 and isinstance(owing[0], Leaf)
        read: list[Tree] = [owing[0] if alone else AnyOf(owing)] if owing else []
        self.postponed += free if owing else free[1:]
        return First((*read, *free))

    def _owes_nothing(self, tree: Tree) -> bool:
        """Whether no tool verifies any of it."""
        some = [self.predicates[leaf.predicate] for leaf in leaves(tree)]
        return bool(some) and all(item.tool_free and not item.is_gate for item in some)

    def _left(self, tree: Tree, facts: Facts, *, complete: bool = False) -> Tree | Dropped:
        """The tree that is left to check: ``NOTHING`` if it holds already, the reason if it can't.
        ``complete``: inside an ``any``, where all checks come before any decision."""
        if isinstance(tree, Leaf):
            fact = facts.get(tree.question)
            if fact is None:
                return tree
            known, met = fact
            if not met and known.wanted == tree.wanted:
                return tree
            gone = Dropped(tree, known, impossible=known.wanted != tree.wanted)
            if gone.impossible:
                return gone
            self.dropped.append(gone)
            return NOTHING
        if isinstance(tree, CONJUNCTION):
            return self._every(tree, dict(facts), complete)
        return self._options(tree, facts, complete)

    def _every(self, tree: All | InOrder, facts: Facts, complete: bool) -> Tree | Dropped:
        children: list[Tree] = []
        for child in tree.children:
            if isinstance(child, Leaf) and child.question not in facts:
                children.append(child)
                if not complete:
                    self._learn_leaf(child, facts)
                continue
            before = len(self.dropped)
            left = self._left(child, facts, complete=complete)
            if isinstance(left, Dropped):
                del self.dropped[before:]
                # Checks before it, and those of every option, are still made.
                if not children and (
                    not complete or all(leaf.question in facts for leaf in leaves(tree))
                ):
                    return left
                children.append(child)
                continue
            if isinstance(left, Leaf) or left != NOTHING:
                children.append(left)
            if not complete:
                self._learn(child, facts)
        if len(children) == 1 and not otherwise_of(tree):
            return children[0]
        return with_children(tree, tuple(children))

    def _options(self, tree: AnyOf | First, facts: Facts, complete: bool) -> Tree | Dropped:
        children: list[Tree] = []
        facts = dict(facts)
        last: Dropped | None = None
        complete = complete or isinstance(tree, AnyOf)
        for number, child in enumerate(tree.children, 1):
            before = len(self.dropped)
            left = self._left(child, facts, complete=complete)
            if isinstance(left, Dropped):
                last = left
                del self.dropped[before:]
                self.dropped.append(Dropped(child, left.known, impossible=True))
                continue
            if isinstance(tree, AnyOf) and left == NOTHING:
                # It holds already; the others still owe their evidence.
                del self.dropped[before:]
                left = child
            children.append(left)
            if isinstance(tree, First):
                if left == NOTHING:
                    known = [item.known for item in self.dropped[before:]][-1:]
                    behind = tree.children[number:]
                    self.dropped += [Dropped(item, why, False) for why in known for item in behind]
                    break
                if isinstance(child, Leaf):
                    other = Leaf(child.predicate, child.arguments, not child.wanted)
                    self._learn_leaf(other, facts, met=False)
        if not children and last is not None:
            return last
        if len(children) == 1 and isinstance(children[0], Leaf):
            return children[0]
        return with_children(tree, tuple(children))

    def _learn(self, tree: Tree, facts: Facts) -> None:
        """Add the facts that are known once the tree was met."""
        if any(self._disturbs(leaf.predicate) for leaf in leaves(tree)):
            facts.clear()
        else:
            self._add(tree, facts)

    def _learn_leaf(self, leaf: Leaf, facts: Facts, *, met: bool = True) -> None:
        """``met``: the leaf holds; otherwise only its opposite wasn't met."""
        if self._disturbs(leaf.predicate):
            facts.clear()
        elif self.predicates[leaf.predicate].established_by is None and (
            met or leaf.question not in facts
        ):
            facts[leaf.question] = (leaf, met)

    def _add(self, tree: Tree, facts: Facts) -> None:
        if isinstance(tree, Leaf):
            self._learn_leaf(tree, facts)
        elif isinstance(tree, CONJUNCTION):
            for child in tree.children:
                self._add(child, facts)

    def _disturbs(self, name: str) -> bool:
        """Whether looking at a predicate may change what was seen before."""
        predicate = self.predicates[name]
        called = [call.action for recipe in predicate.recipes for call in recipe]
        if predicate.established_by is not None:
            called.append(predicate.established_by.action)
        return any(
            bool(self.actions[item].changes) or self.actions[item].is_guarded for item in called
        )


def simplify(tree: Tree, same: dict[str, Leaf] | None = None) -> Tree:
    """``same`` maps the key of a leaf to the first such leaf: identical objects needn't be
    compared."""
    if isinstance(tree, Leaf):
        return tree if same is None else same.setdefault(tree.key, tree)
    kind = type(tree)
    children: dict[object, Tree] = {}
    for child in tree.children:
        if isinstance(child, Leaf):
            key = child.key
            children.setdefault(key, child if same is None else same.setdefault(key, child))
            continue
        simple = simplify(child, same)
        if isinstance(simple, Leaf):
            children.setdefault(simple.key, simple)
        elif type(simple) is kind and not otherwise_of(simple):
            for item in simple.children:
                children.setdefault(item.key if isinstance(item, Leaf) else item, item)
        elif kind is AnyOf or kind is First or simple is not NOTHING:
            # An option that demands nothing always holds; it must stay one.
            children.setdefault(simple, simple)
    if len(children) == 1:
        only = next(iter(children.values()))
        # A lone option of `any` still owes all its evidence, so only a leaf stands for it; what
        # refuses in its own way stays apart.
        if (kind is not AnyOf or isinstance(only, Leaf)) and not otherwise_of(tree):
            return only
    if not children:
        if kind is All or kind is InOrder:
            return NOTHING
        raise mistake(
            "empty-any",
            "a requirement without options can never be true",
            help="give `any` or `first` at least one option",
        )
    return with_children(tree, tuple(children.values()))
