"""Simplification that changes neither truth nor schedule.

In:  any tree.
Out: the same tree without needless one-child nodes, empty conjunctions, nested nodes of
     the same operator and repeated children.

    all[all[a, b], a, in_order[c]]  →  all[a, b, c]
"""

from __future__ import annotations

from sopilot.language.diagnostics import mistake
from sopilot.language.handbook import (
    NOTHING,
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Tree,
    otherwise_of,
    with_children,
)


def simplify(tree: Tree, same: dict[Leaf, Leaf] | None = None) -> Tree:
    """``same`` gives for a leaf the one that was met first: what is the same object need not
    be compared."""
    if isinstance(tree, Leaf):
        return tree if same is None else same.setdefault(tree, tree)
    kind = type(tree)
    children: dict[Tree, None] = {}
    for child in tree.children:
        if isinstance(child, Leaf):
            children.setdefault(child if same is None else same.setdefault(child, child))
            continue
        simple = simplify(child, same)
        if isinstance(simple, Leaf):
            children.setdefault(simple)
        elif type(simple) is kind and not otherwise_of(simple):
            children.update(dict.fromkeys(simple.children))
        elif kind is AnyOf or kind is First or simple != NOTHING:
            # An option that demands nothing always holds; it must stay one.
            children.setdefault(simple)
    if len(children) == 1:
        only = next(iter(children))
        # A lone option of `any` still owes all its evidence, so only a leaf stands for it; what
        # refuses in its own way stays apart.
        if (kind is not AnyOf or isinstance(only, Leaf)) and not otherwise_of(tree):
            return only
    if not children:
        if kind is All or kind is InOrder:
            return NOTHING
        raise mistake(
            "empty-any",
            "a requirement with no option can never hold",
            help="give `any` or `first` at least one option",
        )
    return with_children(tree, tuple(children))
