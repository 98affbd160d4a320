"""Semantic names for the functions of a program."""

from __future__ import annotations

from collections.abc import Collection

from sopilot.language.handbook import All, AnyOf, First, InOrder, Leaf, Tree, leaves, negate

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
        self._predicates = predicates
        self._taken: dict[str, int] = {process: 1}
        self._namesake = self._free(f"verify_{process}") if process in predicates else process

    def rule(self, predicate: str) -> str:
        """The predicate's own name, unless the goal has it."""
        return self._namesake if predicate == self._process else predicate

    def group(self, tree: Tree) -> str:
        """``any_of_funds_cover_overdraft``, ``in_order_5_to_owns_account``: what an alternative
        comes to is its last check, and so it is with many checks that must all hold."""
        checks = dict.fromkeys(leaf if leaf.wanted else negate(leaf) for leaf in leaves(tree))
        parts = [tree] if isinstance(tree, Leaf) else tree.children
        words = [_literal_name(list(leaves(part))[-1]) for part in parts if any(leaves(part))]
        joint = isinstance(tree, All | InOrder) and len(checks) > _SHOWN
        if joint or len(words) > _SHOWN:
            words = [str(len(checks)), "to", words[-1]]
        return self._free("_".join([_PREFIX[type(tree)], *words]))

    def _free(self, wanted: str) -> str:
        """``wanted``, numbered if something else has that name."""
        name = wanted
        while name in self._taken or name in self._predicates:
            number = self._taken[wanted] = self._taken.get(wanted, 1) + 1
            name = f"{wanted}_{number}"
        self._taken[name] = 1
        return name


def _literal_name(leaf: Leaf) -> str:
    return leaf.predicate if leaf.wanted else f"not_{leaf.predicate}"
