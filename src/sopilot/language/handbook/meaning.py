"""The reference meaning of a requirement tree (the paper's Eq. 1)."""

from __future__ import annotations

from collections.abc import Callable

from sopilot.language.handbook._tree import AnyOf, Binding, First, Leaf, Tree

Verdicts = Callable[[str, Binding], bool]
"""The observed truth of a predicate under a binding."""


def meaning(tree: Tree, verdicts: Verdicts) -> bool:
    if isinstance(tree, Leaf):
        return verdicts(tree.predicate, tree.arguments) == tree.wanted
    values = [meaning(child, verdicts) for child in tree.children]
    return any(values) if isinstance(tree, AnyOf | First) else all(values)
