"""What an input declares."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.values.schema import violation

CASES: list[tuple[Any, dict[str, Any], str]] = [
    (None, {"type": "null"}, ""),
    (0, {"type": "null"}, "must be of type null"),
    (False, {"type": "boolean"}, ""),
    (0, {"type": "boolean"}, "must be of type boolean"),
    (5, {"type": "integer"}, ""),
    (5.0, {"type": "integer"}, ""),
    (5.5, {"type": "integer"}, "must be of type integer"),
    (True, {"type": "integer"}, "must be of type integer"),
    (5.5, {"type": "number"}, ""),
    (True, {"type": "number"}, "must be of type number"),
    ("5", {"type": "number"}, "must be of type number"),
    ("5", {"type": "string"}, ""),
    (5, {"type": "string"}, "must be of type string"),
    ([], {"type": "array"}, ""),
    ({}, {"type": "array"}, "must be of type array"),
    ({}, {"type": "object"}, ""),
    ([], {"type": "object"}, "must be of type object"),
    (5, {"type": "whatever"}, ""),
    (5, {"type": ["string", "null"]}, "must be of type string or null"),
    (None, {"type": ["string", "null"]}, ""),
    (5, {}, ""),
    ("a\0b", {}, "has a NUL character"),
    (5, {"const": 5.0}, ""),
    (True, {"const": 1}, "has the wrong value"),
    (None, {"const": None}, ""),
    ("a", {"enum": ["a", "b"]}, ""),
    ("c", {"enum": ["a", "b"]}, "is not one of"),
    (5, {"minimum": 5}, ""),
    (4.9, {"minimum": 5}, "must be at least 5"),
    (5, {"maximum": 5}, ""),
    (5.1, {"maximum": 5}, "must be at most 5"),
    (5, {"exclusiveMinimum": 5}, "must be greater than 5"),
    (5.1, {"exclusiveMinimum": 5}, ""),
    (5, {"exclusiveMaximum": 5}, "must be less than 5"),
    (4.9, {"exclusiveMaximum": 5}, ""),
    (5, {"minimum": True, "maximum": False, "exclusiveMinimum": "6"}, ""),
    (True, {"minimum": 5}, ""),
    (5, {"minLength": 9, "pattern": "x"}, ""),
    ("ab", {"minLength": 2, "maxLength": 2}, ""),
    ("a", {"minLength": 2}, "must have at least 2 characters"),
    ("abc", {"maxLength": 2}, "must have at most 2 characters"),
    ("abc", {"maxItems": 2, "minimum": 9}, ""),
    ([1, 2], {"minItems": 2, "maxItems": 2}, ""),
    ([1], {"minItems": 2}, "must have at least 2 items"),
    ([1, 2, 3], {"maxItems": 2}, "must have at most 2 items"),
    ("ab", {"pattern": "^a"}, ""),
    ("ba", {"pattern": "^a"}, "does not have the form"),
    ("ba", {"pattern": "("}, "pattern"),
    ("ba", {"pattern": 5}, ""),
    ([1, "a"], {"items": {"type": "integer"}}, "x[1] must be of type integer"),
    ([1, 2], {"items": {"type": "integer"}}, ""),
    ([1, "a"], {"items": True}, ""),
    ({"a": 1}, {"required": ["a"]}, ""),
    ({"a": 1}, {"required": ["b"]}, "`b` is missing in x"),
    ({"a": 1}, {"required": "b"}, ""),
    ({"a": 1}, {"properties": {"a": {"type": "string"}}}, "x.a must be of type string"),
    ({"a": "1"}, {"properties": {"a": {"type": "string"}}}, ""),
    ({"a": 1}, {"properties": {"a": True}, "additionalProperties": False}, ""),
    ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, "`b` is not expected"),
    ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": True}, ""),
    ({"b": 1}, {"additionalProperties": False}, "`b` is not expected in x"),
    ({"a": [{"b": 1}]}, {"properties": {"a": {"items": {"required": ["c"]}}}}, "in x.a[0]"),
]


@pytest.mark.parametrize(("value", "schema", "wrong"), CASES)
def test_a_value_and_what_is_declared(value: Any, schema: dict[str, Any], wrong: str) -> None:
    found = violation(value, schema, "x")
    assert (found is None) == (wrong == "")
    assert wrong in (found or "")


def test_without_a_place_it_is_the_content() -> None:
    assert violation(5, {"type": "string"}) == "the content must be of type string"
    assert violation({}, {"required": ["a"]}) == "`a` is missing"
    assert violation({"a": 1}, {"properties": {"a": {"const": 2}}}) == "a has the wrong value"
    closed = {"additionalProperties": False}
    assert violation({"a": 1}, closed) == "`a` is not expected"
