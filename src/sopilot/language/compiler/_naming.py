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
        self._taken: dict[str, int] = {process: 1, **dict.fromkeys(predicates, 1)}
        self._namesake = self._free(f"verify_{process}") if process in predicates else process

    def rule(self, predicate: str) -> str:
        """The predicate's own name, unless the goal has it."""
        return self._namesake if predicate == self._process else predicate

    def group(self, tree: Tree) -> str:
        """``any_of_funds_cover_overdraft``, ``in_order_logged_in_and_4_more``."""
        predicates = list(dict.fromkeys(_literal_name(leaf) for leaf in leaves(tree)))
        words = predicates[:_SHOWN]
        if len(predicates) > _SHOWN:
            words = [predicates[0], f"and_{len(predicates) - 1}_more"]
        return self._free("_".join([_PREFIX[type(tree)], *words]))

    def _free(self, wanted: str) -> str:
        """``wanted``, numbered if something else has that name."""
        name = wanted
        while name in self._taken:
            self._taken[wanted] += 1
            name = f"{wanted}_{self._taken[wanted]}"
        self._taken[name] = 1
        return name


def _literal_name(leaf: Leaf) -> str:
    return leaf.predicate if leaf.wanted else f"not_{leaf.predicate}"
