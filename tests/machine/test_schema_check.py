"""What a value is held to, keyword by keyword, with the place of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.values.json import JSON
from sopilot.values.schema import violation

LETTER = {
    "type": "object",
    "required": ["to"],
    "properties": {
        "to": {"type": "string", "minLength": 1},
        "lines": {"type": "array", "items": {"type": "object", "required": ["text"]}},
        "inner": {"required": ["x"], "properties": {"x": {}}, "additionalProperties": False},
    },
}


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (5, {"type": ["string", "null"]}, "the content must be of type string or null"),
        ("a\0b", {}, "the content has a NUL character in it"),
        (True, {"const": 1}, "the content has the wrong value"),
        ("c", {"enum": ["a", "b"]}, "the content isn't one of the allowed values"),
        (4, {"minimum": 5}, "the content must be at least 5"),
        (6, {"maximum": 5}, "the content must be at most 5"),
        (5, {"exclusiveMinimum": 5}, "the content must be greater than 5"),
        (5, {"exclusiveMaximum": 5}, "the content must be less than 5"),
        ("a", {"minLength": 2}, "the content must have at least 2 characters"),
        ([1, 2, 3], {"maxItems": 2, "maxLength": 1}, "the content must have at most 2 items"),
        ("ba", {"pattern": "^a"}, "the content has the wrong form"),
        ([[1], [2, "x"]], {"items": {"items": {"type": "integer"}}},
         "[1][1] must be of type integer"),
        ({}, LETTER, "`to` is missing"),
        ({"to": "a", "lines": [{"text": ""}, {}]}, LETTER, "`text` is missing in lines[1]"),
        ({"to": "a", "inner": {"x": 1, "y": 2}}, LETTER, "`y` is not expected in inner"),
        ({"to": "a", "inner": {"x": 1}, "more": 2}, LETTER, None),
        # A keyword that says nothing sensible is ignored.
        ("c", {"enum": "abc"}, None),
        (9, {"minimum": True, "maximum": "5"}, None),
        ("abc", {"maxLength": 2.5, "pattern": 5}, None),
        ({"b": 1}, {"required": "ab", "properties": [], "additionalProperties": {}}, None),
        ([1], {"items": False}, None),
    ],
)  # fmt: skip
def test_what_is_wrong_first_with_its_place(
    value: JSON, schema: dict[str, Any], problem: str | None
) -> None:
    assert violation(value, schema) == problem


def test_a_place_is_told_from_where_it_begins() -> None:
    assert violation(5, {"type": "string"}, "`to`") == "`to` must be of type string"
    assert violation({}, {"required": ["x"]}, "`to`") == "`x` is missing in `to`"
    inner = {"properties": {"x": {"maximum": 1}}}
    assert violation({"x": 2}, inner, "`to`") == "`to`.x must be at most 1"
    assert violation([2], {"items": {"maximum": 1}}, "`to`") == "`to`[0] must be at most 1"
