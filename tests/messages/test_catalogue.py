"""Every message has wording in both languages, of the same fields."""

from __future__ import annotations

import ast
import copy
import json
import string
from pathlib import Path

import pytest

from sopilot.messages.audit import EXPLANATIONS, LABELS, TITLES
from sopilot.messages.catalogue import (
    SENTENCES,
    kept_message,
    listed,
    message_json,
    sentence,
    worded,
)
from sopilot.messages.results import RESULTS
from sopilot.messages.texts import TEXTS
from sopilot.values.schema import violation

SOURCE = Path(__file__).parents[2] / "src" / "sopilot"


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_both_languages_have_the_same_fields() -> None:
    for table in (SENTENCES, TEXTS, RESULTS):
        for code, (english, chinese) in table.items():
            assert fields_of(chinese) <= fields_of(english), code
    for table in (EXPLANATIONS, LABELS, TITLES):
        for code, (english, chinese) in table.items():
            assert fields_of(chinese) == fields_of(english), code


def test_every_code_in_the_source_is_in_the_catalogue_with_its_fields() -> None:
    used = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("sentence", "_coded") or not node.args:
                continue
            code = node.args[0]
            if isinstance(code, ast.Constant):
                used.add(code.value)
                given = {keyword.arg for keyword in node.keywords}
                assert fields_of(SENTENCES[code.value][0]) == given, (path.name, code.value)
    assert used <= SENTENCES.keys()
    assert len(used) > 100


def test_a_message_is_worded_with_the_messages_in_it() -> None:
    why = sentence("not-called", call="read_balance(account=7)")
    text = sentence("undecided", predicate="funded", wanted="true", why=why)
    assert text == (
        "`funded` must be true, but is undecided: `read_balance(account=7)` has not been called"
    )
    assert worded(text, "en") == text
    assert (
        worded(text, "zh") == "`funded` 须为 true，但尚未判定：尚未调用 `read_balance(account=7)`"
    )
    assert worded(listed([why, text]), "zh").count("尚未调用") == 2
    assert worded("a tool's own words", "zh") == "a tool's own words"


def test_a_message_survives_copies_and_the_trace() -> None:
    text = listed([sentence("no-value", name="a"), sentence("model-only")])
    stored = json.loads(json.dumps(message_json(text)))
    for again in (copy.deepcopy(text), kept_message(stored)):
        assert again == text
        assert worded(again, "zh") == worded(text, "zh") != text
    assert kept_message({"$ref": "sha256:0"}) == ""
    assert kept_message({"code": "of-another-release", "fields": {}}) == ""


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("x", {"type": "number"}),
        ("\0", {"type": "string"}),
        (1, {"const": 2}),
        (1, {"enum": [2]}),
        (1, {"minimum": 2}),
        (1, {"exclusiveMaximum": 1}),
        ("x", {"minLength": 2}),
        ([1], {"maxItems": 0}),
        ("x", {"pattern": "^y"}),
        ({}, {"required": ["a"]}),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}),
        ([{}], {"items": {"required": ["a"]}}),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_both_languages(
    value: object, schema: dict[str, object]
) -> None:
    problem = violation(value, schema, "`v`")
    assert problem is not None
    chinese = worded(problem, "zh")
    assert chinese != problem
    assert not set(chinese) & set("{}")
    assert sentence(problem.code, **problem.fields) == problem  # type: ignore[attr-defined]
