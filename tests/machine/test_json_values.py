"""Plain, agreeing and canonical values, and the small schema check."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from json_values import json_values
from sopilot.values.json import (
    JSON,
    agree,
    canonical,
    escape_references,
    holds_stand_in,
    key_of,
    plain,
    plain_mapping,
    same,
    same_name,
    shown,
    without_references,
)
from sopilot.values.schema import violation


class _Word(str):
    """As a library may hand them out."""


class _Number(int):
    pass


def _in_list(value: object) -> object:
    return [value]


def _in_dict(value: object) -> object:
    return {"a": value}


def _in_mapping(value: object) -> object:
    return MappingProxyType({"a": value})


JSONS = json_values(st.text("abc"), most=12)


@settings(deadline=None)
@given(JSONS)
def test_plain_keeps_json_and_canonical_has_one_spelling(value: JSON) -> None:
    assert plain(value) == value
    assert json.loads(canonical(value)) == value
    assert canonical(json.loads(canonical(value))) == canonical(value)
    assert agree(value, plain(value))


@pytest.mark.parametrize(
    ("left", "right", "agrees", "is_same"),
    [
        (1, 1.0, True, True),
        (1, True, False, False),
        (0, False, False, False),
        ("100", 100, True, False),
        (2.5, "2.5", True, False),
        ("1e2", 100, True, False),
        ("0x10", 16, False, False),
        ("true", True, False, False),
        ("", 0, False, False),
        ("9" * 100, 9, False, False),
        (None, None, True, True),
        (None, "null", False, False),
        ([1, "2"], [1.0, 2], True, False),
        ([1], [1, 2], False, False),
        ({"a": 1}, {"a": True}, False, False),
        ({"a": 1}, {"b": 1}, False, False),
        ("bob", "Bob", False, False),
        ("b", None, False, False),
        ([1], "[1]", False, False),
        ({}, [], False, False),
        ([], None, False, False),
        ({"a": 1}, 1, False, False),
        ("[1]", 1, False, False),
        ("null", 0, False, False),
        ("true", 1, False, False),
        ("NaN", 0, False, False),
        (2, 3, False, False),
        ([1, 2], [1, 3], False, False),
        ({"a": "1", "b": [2]}, {"a": 1, "b": ["2"]}, True, False),
        ({"a": 1}, {"a": 1, "b": 2}, False, False),
        (True, True, True, True),
        ("1", 1, True, False),
        ("a", "a", True, True),
        ("a", "b", False, False),
        (None, 0, False, False),
        (None, False, False, False),
        ({}, None, False, False),
        ([1, {"a": 2}], [1.0, {"a": 2.0}], True, True),
        ([1], [True], False, False),
        ([["1"]], [[1]], True, False),
        ({"a": 1}, {"a": 1, "b": None}, False, False),
        ({"a": 1}, {"a": "1"}, True, False),
        ({"a": [0]}, {"a": [False]}, False, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, True),
    ],
)
def test_what_agrees_and_what_is_the_same(
    left: JSON, right: JSON, agrees: bool, is_same: bool
) -> None:
    """A number agrees with its spelling, and isn't the same; what is the same has one key."""
    for one, other in ((left, right), (right, left)):
        assert agree(one, other) is agrees
        assert same(one, other) is is_same
    assert (key_of({"x": left}) == key_of({"x": right})) is is_same
    assert (key_of({"x": left, "y": []}) == key_of({"y": [], "x": right})) is is_same
    assert key_of({"x": left}) != key_of({"y": left})


BOUNDS = [
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
]
SCHEMAS = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["string", "number", "integer", "boolean", "null", "array"])}
        ),
        st.fixed_dictionaries({"enum": st.lists(JSONS, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": JSONS}),
        st.dictionaries(st.sampled_from(BOUNDS), st.integers(0, 4), max_size=2),
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


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), {"$dropped": "not finite: nan"}),
        (float("-inf"), {"$dropped": "not finite: -inf"}),
        (1.5, 1.5),
        (b"x", {"$dropped": "not JSON"}),
        ({1}, {"$dropped": "not JSON"}),
        ((1, (2,)), [1, [2]]),
        ("\ud800é", "?é"),
        (["\ud800"], ["?"]),
        ({"é\ud800": "\ud800", "é": "é"}, {"é": "é", "é?": "?"}),
        ({None: 0, True: 1, False: 2, 7: 3, 1.5: 4}, None),
        (MappingProxyType({"b": (), "a": MappingProxyType({})}), {"a": {}, "b": []}),
        (_Word("word"), "word"),
        (_Number(5), 5),
        ({_Word("b"): 1, "a": 2}, {"a": 2, "b": 1}),
    ],
)
def test_what_is_kept_of_anything(value: object, kept: JSON) -> None:
    if kept is None:
        kept = {"$dropped": 4, "7": 3, "false": 2, "null": 0, "true": 1}
    copy = plain(value)
    assert copy == kept
    assert json.dumps(copy) == json.dumps(kept)  # in the same order, of the same types
    assert type(copy) is type(kept)


@pytest.mark.parametrize("wrap", [_in_list, _in_dict, _in_mapping])
def test_nesting_is_kept_64_deep(wrap: Callable[[object], object]) -> None:
    def nested(levels: int) -> object:
        value: object = "x"
        for _ in range(levels):
            value = wrap(value)
        return value

    assert b"$dropped" not in canonical(plain(nested(64)))
    assert b"$dropped" in canonical(plain(nested(65)))
    mapping = {"a": nested(63)}
    assert b"$dropped" not in canonical(plain_mapping(mapping))
    assert b"$dropped" in canonical(plain_mapping({"a": nested(64)}))


REFERENCE: JSON = {"$ref": "sha256:1", "bytes": 3}
DROPPED: JSON = {"$dropped": "not JSON"}
NO_REFERENCE: JSON = {"$dropped": "has the form of a reference"}


@pytest.mark.parametrize(
    ("value", "stands", "cleared"),
    [
        (REFERENCE, True, NO_REFERENCE),
        ([1, REFERENCE], True, [1, NO_REFERENCE]),
        ({"a": {"b": REFERENCE}, "c": 1}, True, {"a": {"b": NO_REFERENCE}, "c": 1}),
        ({**REFERENCE, "more": 1}, False, NO_REFERENCE),
        ({"$ref": "sha256:1"}, False, NO_REFERENCE),
        (DROPPED, True, DROPPED),
        ({"a": [DROPPED, 1]}, True, {"a": [DROPPED, 1]}),
        ("$dropped", False, "$dropped"),
        (["$dropped", "$ref", "bytes"], False, ["$dropped", "$ref", "bytes"]),
        ([], False, []),
        ({}, False, {}),
        (None, False, None),
    ],
)
def test_what_stands_for_a_value_that_is_not_kept(value: JSON, stands: bool, cleared: JSON) -> None:
    assert holds_stand_in(value) is stands
    assert without_references(value) == cleared


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        (REFERENCE, {"$$ref": "sha256:1", "bytes": 3}),
        ([{"$ref": 1, "$$ref": 2}], [{"$$ref": 1, "$$$ref": 2}]),
        ({"a": {"href": 1, "ref": 2, "x$ref": 3}}, {"a": {"href": 1, "ref": 2, "x$ref": 3}}),
        ("$ref", "$ref"),
    ],
)
def test_a_tools_own_data_never_has_the_form_of_a_withheld_value(
    value: JSON, escaped: JSON
) -> None:
    assert escape_references(value) == escaped
    assert not holds_stand_in(escaped)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Ada Lovelace", "  ada   LOVELACE ", True),
        ("Ada", "Ａｄａ", True),
        ("A\u200bda", "Ada", True),
        ("Straße", "STRASSE", True),
        ("Ada", "Adam", False),
        ("Ada B", "AdaB", False),
    ],
)
def test_a_name_in_another_spelling(one: str, other: str, alike: bool) -> None:
    assert (same_name(one) == same_name(other)) is alike
