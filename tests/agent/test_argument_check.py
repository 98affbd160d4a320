"""Schemas of tools are anybody's: none may break a call, and JSON's rules hold."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from json_values import JSONS
from sopilot.agent.toolbox import argument_problem
from sopilot.protocols import ToolSchema

KEYWORDS = st.dictionaries(st.sampled_from(["type", "enum", "x"]), JSONS | st.floats())


def problem(schema: Any, value: Any) -> str:
    return argument_problem(ToolSchema("t", "", {"properties": {"n": schema}}), {"n": value})


@given(KEYWORDS | JSONS, JSONS | st.floats())
def test_no_schema_of_an_argument_breaks_the_call(schema: Any, value: Any) -> None:
    assert isinstance(problem(schema, value), str)


@given(JSONS, JSONS)
def test_no_schema_of_a_tool_breaks_the_call(properties: Any, required: Any) -> None:
    tool = ToolSchema("t", "", {"properties": properties, "required": required})
    assert isinstance(argument_problem(tool, {"n": 1}), str)


@settings(deadline=None)
@given(arguments=st.dictionaries(st.sampled_from(["a", "b", "c"]), JSONS | st.floats()))
def test_argument_check_agrees_with_json_schema(arguments: dict[str, object]) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    valid = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert (argument_problem(ToolSchema("t", "", schema), arguments) == "") == valid
