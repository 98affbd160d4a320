"""Values that a frame cuts: they have a name, and stay one value on one line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from json_values import json_values
from sopilot.values.text import (
    VALUE_BUDGET,
    abbreviation_name,
    digest_of,
    quote_literal,
    quote_value,
)


@settings(deadline=None, max_examples=200)
@given(json_values(most=20) | st.text(), st.integers(30, 200))
def test_what_is_shown_is_the_value_or_names_it(value: object, budget: int) -> None:
    shown = quote_value(value, budget)
    assert len(shown) <= budget
    assert shown.isprintable()
    said = json.loads(shown)  # whoever copies it copies one JSON value
    if said != value:
        assert isinstance(said, str)
        assert said.endswith("…")
        assert abbreviation_name(said) == digest_of(value)


@pytest.mark.parametrize(
    "value",
    [
        'a"b' * 60,
        '"' * 200,
        "\\" * 200,
        '\\"' * 100,
        "\n" * 200,
        "\u202e" * 200,
        "\U000e0001" * 200,
        ["x" * 50, 'y"z' * 20],
        {"k": 'say "no"' * 20},
        "x" * (VALUE_BUDGET - 2) + "y",
    ],
)
def test_awkward_values_are_cut_to_one_text(value: object) -> None:
    shown = quote_value(value)
    assert len(shown) <= VALUE_BUDGET
    said = json.loads(shown)
    assert abbreviation_name(said) == digest_of(value)
    assert abbreviation_name(f"@{digest_of(value)}") == digest_of(value)


@pytest.mark.parametrize(
    ("value", "begins"),
    [("abc " * 60, "abc abc "), (["abc"] * 60, "['abc', "), ({"k": "v" * 200}, "{'k': 'vvv")],
)
def test_what_is_cut_begins_as_the_value_does(value: object, begins: str) -> None:
    assert json.loads(quote_value(value)).removeprefix(f"@{digest_of(value)} ").startswith(begins)


def test_what_fits_is_not_cut() -> None:
    fits = "x" * (VALUE_BUDGET - 2)
    assert quote_value(fits) == f'"{fits}"'
    assert abbreviation_name(quote_value(fits)) is None


def test_two_values_that_begin_alike_have_two_names() -> None:
    one, other = "x" * 500, "x" * 499 + "y"
    assert quote_value(one) != quote_value(other)
    # A list that spells like a text is not that text.
    assert digest_of(["a"]) != digest_of('["a"]')


@pytest.mark.parametrize("text", ["@3f2a91c", "@3F2A91C0 x", "x @3f2a91c0 ", "@3f2a91c0x", 7, None])
def test_what_is_no_name_stays_what_it_is(text: object) -> None:
    assert abbreviation_name(text) is None


def test_a_constant_of_the_program_is_never_cut() -> None:
    assert json.loads(quote_literal("x" * 5_000)) == "x" * 5_000
