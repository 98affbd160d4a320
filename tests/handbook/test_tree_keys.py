"""A leaf is found in tables by its key, a text: equal leaves have equal keys, and no others do."""

from __future__ import annotations

import copy
import itertools

from hypothesis import given
from hypothesis import strategies as st

from sopilot.handbook.requirements import All, AnyOf, Constant, First, InOrder, Leaf, Name

_NAMES = st.text("ab'\"=:(), ", max_size=4)
_TERMS = st.one_of(
    st.builds(Name, _NAMES),
    st.builds(Constant, st.one_of(_NAMES, st.integers(0, 1), st.just(1.0), st.booleans())),
    st.just(Constant(None)),
)
_LEAVES = st.builds(
    Leaf, _NAMES, st.lists(st.tuples(_NAMES, _TERMS), max_size=2).map(tuple), st.booleans()
)


def _parts(leaf: Leaf) -> object:
    terms = [
        (parameter, Name, term.name)
        if isinstance(term, Name)
        else (parameter, type(term.value), term.value)
        for parameter, term in leaf.arguments
    ]
    return leaf.predicate, terms, leaf.wanted


@given(_LEAVES, _LEAVES)
def test_leaves_are_equal_where_their_parts_are(one: Leaf, other: Leaf) -> None:
    same = _parts(one) == _parts(other)
    assert (one == other) is same
    assert (one.key == other.key) is same
    assert one != other or hash(one) == hash(other)


def test_a_name_and_a_value_that_read_alike_are_two_leaves() -> None:
    terms = [Name("a"), Name("'a'"), Constant("a"), Constant(1), Constant(1.0), Constant(True)]
    made = [Leaf("p", (("x", term),), wanted) for term in terms for wanted in (True, False)]
    for one, other in itertools.combinations(made, 2):
        assert one != other
    assert len({leaf.question for leaf in made}) == len(terms)


def test_operators_over_the_same_are_different_keys() -> None:
    leaf = Leaf("p")
    trees = [kind((leaf,)) for kind in (All, AnyOf, First)] + [InOrder((leaf,))]
    trees += [InOrder((leaf,), "words")]
    assert len(set(trees)) == len(trees)
    assert set(copy.deepcopy([All((leaf,))])) == {All((Leaf("p"),))}
