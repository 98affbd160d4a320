"""Semantic names for the functions of a program."""

from __future__ import annotations

from collections.abc import Collection

from sopilot.language.handbook import All, AnyOf, First, InOrder, Leaf, Tree, leaves

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
        """``any_of_funds_cover_overdraft``, ``in_order_5_to_owns_account``: what an alternative
        comes to is its last check, and so it is with many checks that must all hold."""
        checks = {leaf.question for leaf in leaves(tree)}
        assert not isinstance(tree, Leaf)  # which has a function already
        ends = [list(leaves(part))[-1:] for part in tree.children]
        words = [_literal_name(leaf) for end in ends for leaf in end]
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


def _literal_name(leaf: Leaf) -> str:
    return leaf.predicate if leaf.wanted else f"not_{leaf.predicate}"
