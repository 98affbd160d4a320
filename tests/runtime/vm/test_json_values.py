"""Plain, agreeing and canonical values, and the small schema check."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sopilot.runtime.vm import JSON, agree, canonical, plain
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.values import shown

JSONS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**60), 2**60),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text("abc"), inner)),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSONS)
def test_plain_keeps_json_and_canonical_has_one_spelling(value: JSON) -> None:
    assert plain(value) == value
    assert json.loads(canonical(value)) == value
    assert canonical(json.loads(canonical(value))) == canonical(value)
    assert agree(value, plain(value))


def test_plain_is_a_copy_in_canonical_order() -> None:
    inner = [1]
    value = {"b": inner, "a": 1}
    copy = plain(value)
    inner.append(2)
    assert copy == {"a": 1, "b": [1]}
    assert list(copy) == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, b"x", object(), 10**5000, "\ud800", {None: 1, 2: 3}],
    ids=["nan", "infinity", "set", "bytes", "object", "huge", "surrogate", "keys"],
)
def test_anything_can_be_written(value: object) -> None:
    assert canonical(plain({"x": value}))


def test_nesting_is_cut() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert b"nested too deeply" in canonical(plain(deep))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ("100", 100, True),
        (2.5, "2.5", True),
        ("1e2", 100, True),
        ("0x10", 16, False),
        ("true", True, False),
        ("", 0, False),
        ("9" * 100, 9, False),
        (None, None, True),
        (None, "null", False),
        ([1, "2"], [1.0, 2], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ("bob", "Bob", False),
    ],
)
def test_agreement(left: JSON, right: JSON, same: bool) -> None:
    assert agree(left, right) is same
    assert agree(right, left) is same


SCHEMAS = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["string", "number", "integer", "boolean", "null", "array"])}
        ),
        st.fixed_dictionaries({"enum": st.lists(JSONS, min_size=1, max_size=3)}),
        st.just({}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner),
                "required": st.lists(st.sampled_from("abc"), unique=True),
                "additionalProperties": st.booleans(),
            }
        ),
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=300)
@given(JSONS, SCHEMAS)
def test_the_schema_check_agrees_with_jsonschema(value: JSON, schema: dict[str, object]) -> None:
    assume("\\u0000" not in json.dumps(value))  # no text with NUL is of any type here
    reference = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (violation(value, schema) is None) == reference


@settings(deadline=None)
@given(st.text(), st.integers(8, 60))
def test_shown_values_stay_on_one_short_line(text: str, width: int) -> None:
    line = shown(plain(text), width)
    assert len(line) <= width
    assert line.isprintable()


def test_a_number_is_spelled_in_at_most_64_characters() -> None:
    text = f"1.{'0' * 62}"
    assert agree(text, 1)
    assert not agree(f"{text}0", 1)
