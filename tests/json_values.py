"""JSON values of any shape, for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def json_values(keys: st.SearchStrategy[str] = TEXTS, *, most: int = 8) -> st.SearchStrategy[Any]:
    """Values that JSON can hold, with at most so many leaves."""
    numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=most,
    )


JSONS = json_values()
