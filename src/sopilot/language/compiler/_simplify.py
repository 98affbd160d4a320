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


def simplify(tree: Tree, same: dict[str, Leaf] | None = None) -> Tree:
    """``same`` gives for the key of a leaf the one that was met first: what is the same object
    need not be compared."""
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
            for one in simple.children:
                children.setdefault(one.key if isinstance(one, Leaf) else one, one)
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
            "a requirement with no option can never hold",
            help="give `any` or `first` at least one option",
        )
    return with_children(tree, tuple(children.values()))
