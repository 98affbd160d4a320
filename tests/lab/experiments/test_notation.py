from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Name,
    leaves,
    meaning,
)
from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.source import read_binding, read_recipes, read_tree, singles

NAMES = "abcde"


def single(name: str) -> list[Any]:
    return ["single", name, {"x": "y"}]


processes = st.recursive(
    st.sampled_from(NAMES).map(single),
    lambda inner: st.tuples(
        st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)
    ).map(list),
    max_leaves=8,
)
trees = st.recursive(
    st.tuples(st.sampled_from(["", "not "]), st.sampled_from(NAMES)).map(
        lambda pair: single("".join(pair))
    ),
    lambda inner: st.tuples(
        st.sampled_from(["and", "or", "chain", "gate"]), st.lists(inner, min_size=1, max_size=3)
    ).map(list),
    max_leaves=10,
)


def satisfied(process: Any, called: frozenset[str]) -> bool:
    if process[0] == "single":
        return process[1] in called
    every = all if process[0] == "and" else any
    return every(satisfied(part, called) for part in process[1])


def upstream_truth(tree: Any, holds: frozenset[str]) -> bool:
    """Upstream's own reading of a tree, written independently of ours."""
    if tree[0] == "single":
        name: str = tree[1]
        return name[4:] not in holds if name.startswith("not ") else name in holds
    values = [upstream_truth(part, holds) for part in tree[1]]
    return all(values) if tree[0] in ("and", "chain") else any(values)


@given(processes, st.frozensets(st.sampled_from(NAMES)))
@settings(deadline=None)
def test_recipes_are_the_alternatives_of_the_process(process: Any, called: frozenset[str]) -> None:
    recipes = read_recipes(process, {})
    some = any({call.action for call in recipe} <= called for recipe in recipes)
    assert some == satisfied(process, called)
    assert len(set(recipes)) == len(recipes)
    assert all(len(set(recipe)) == len(recipe) for recipe in recipes)


@given(trees, st.frozensets(st.sampled_from(NAMES)))
@settings(deadline=None)
def test_a_tree_keeps_its_meaning_and_its_leaves(tree: Any, holds: frozenset[str]) -> None:
    read = read_tree(tree, {})
    assert meaning(read, lambda name, _: name in holds) == upstream_truth(tree, holds)
    written = [("" if leaf.wanted else "not ") + leaf.predicate for leaf in leaves(read)]
    assert written == [each[1] for each in singles(tree)]


def test_the_four_operators_and_the_empty_tree() -> None:
    a = Leaf("a", (("x", Name("y")),))
    for operator, shape in (("and", All), ("chain", InOrder), ("or", AnyOf), ("gate", First)):
        assert read_tree([operator, [single("a")]], {}) == shape((a,))
    assert read_tree(single("not a"), {}) == Leaf("a", (("x", Name("y")),), wanted=False)
    assert read_tree(None, {}) == NOTHING
    with pytest.raises(UserMistake, match="unknown operator `xor`"):
        read_tree(["xor", [single("a")]], {})


def test_arguments_follow_the_declared_order() -> None:
    assert read_binding({"b": "B", "a": "A"}, ("a", "b")) == (("a", Name("A")), ("b", Name("B")))
    assert read_binding(None, ("a",)) == ()
    with pytest.raises(UserMistake, match="constant as code"):
        read_binding({"a": "value __import__('os')"}, ("a",))
