from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.expressions import VerdictError, free_names, judge, parse_verdict
from sopilot.messages.errors import SopilotError

JUDGED: list[tuple[str, dict[str, object], bool]] = [
    ("result.balance >= amount", {"result": {"balance": 100.0}, "amount": 100}, True),
    ("result.balance >= amount", {"result": {"balance": 100}, "amount": 100.5}, False),
    ("result.balance == amount", {"result": {"balance": 100}, "amount": 100.0}, True),
    ("balance >= amount * 2 + 1", {"balance": 100.5, "amount": 10}, True),
    ("balance >= amount * 2", {"balance": 100, "amount": 50.5}, False),
    ("rate * 1.5 > 2", {"rate": 2}, True),
    ("total / count > 2", {"total": 5.0, "count": 2}, True),
    ("items[0].price + 1 > 3", {"items": [{"price": 2.5}]}, True),
    ("name in ['a', 'b'] && !has(result.closed)", {"name": "b", "result": {}}, True),
    ("items.exists(x, x.id == wanted)", {"items": [{"id": 1}], "wanted": 1}, True),
    ("result == null", {"result": None}, True),
    ("result['a b'] == 'é'", {"result": {"a b": "é"}}, True),
    ("n > 9223372036854775806", {"n": 9223372036854775807}, True),
    ("size(items) == 2", {"items": ("a", "b")}, True),
    ("x + 1 > 2.5 || size(y) >= 1.5", {"x": 1, "y": "ab"}, True),
    (" && ".join(["y.all(x, x > 0)"] * 120 + ["z == 1"]), {"y": [1], "z": 1}, True),
]


@pytest.mark.parametrize(("text", "variables", "answer"), JUDGED)
def test_judge(text: str, variables: dict[str, object], answer: bool) -> None:
    assert judge(text, variables) is answer
    assert parse_verdict(text) == ()
    assert free_names(text) == variables.keys()


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("a", {"a": 1}, "neither true nor false"),
        ("a.b == 1", {"a": {}}, "there is no field `b`"),
        ("nope", {}, "nope"),
        ("a +", {}, "ends too early"),
        ("1 / n == 1", {"n": 0}, "division by zero"),
        ("'a' + n == 'b'", {"n": 1}, "two numbers, two strings or two lists"),
        ("n > 9223372036854775807", {"n": 10**30}, "too large"),
        ("n == 1", {"n": True}, "true or false is compared with a number"),
        ("a == a", {"a": object()}, "not JSON"),
        ("a == a", {"a": {1, 2}}, "not JSON"),
        ("a == 0", {"a": 10**400}, "too large"),
        ("(" * 500 + "true" + ")" * 500, {}, "nested too deeply"),
        ("x.back", {"x": [{"back": True}]}, "a field is read from a value that has no fields"),
        ("x.opn", {"x": {"open": True}}, "there is no field `opn`"),
        ("x <= '300'", {"x": 80}, "a number and a string can't be ordered"),
        ("x == 80", {"x": "80"}, "a string is compared with a number"),
        ("x == 80", {"x": [80]}, "a list is compared with a number"),
    ],
)
def test_failures_are_typed(text: str, variables: dict[str, object], message: str) -> None:
    with pytest.raises(VerdictError, match=message) as caught:
        judge(text, variables)
    assert isinstance(caught.value, SopilotError)


def test_hostile_expressions_and_values_end_soon() -> None:
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    text = "true"
    for name in "abcdefgh":
        text = f"{ten}.all({name}, {text})"
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    start = time.process_time()
    with pytest.raises(VerdictError):
        judge(text, {})
    with pytest.raises(VerdictError, match="nested"):
        judge("size(x) == 1", {"x": deep})
    assert judge("x.matches('(a+)+b')", {"x": "a" * 5_000}) is False
    assert time.process_time() - start < 2
    while deep:  # freed step by step: the interpreter would recurse
        deep = deep[0]  # type: ignore[assignment]  # every level is a list


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a +", "ends too early", 4),
        ("a and b", "unexpected `and`", 3),
        ("a = b", "`=` isn't an operator", 3),
        ("f(a)", "unknown function `f`", 1),
        ("a + 1 ? 1 : 2", "`?` needs true or false", 7),
        ("1 + 2", "but this is neither", 1),
        ("a.map(1, a)", "`map` takes a name", 3),
        ("has(a)", "`has` takes a field", 1),
        ("size(a, a) == 1", "`size` takes 1 argument", 1),
        ("'a", "a string isn't closed", 1),
        (r"a == '\q'", "unknown escape", 6),
        ("", "ends too early", 1),
        ("x" * 20_000, "longer", 1),
    ],
)
def test_problems(text: str, problem: str, column: int) -> None:
    first = parse_verdict(text)[0]
    assert problem in first.message
    assert first.at + 1 == column


def test_a_function_of_another_language_is_translated() -> None:
    assert parse_verdict("len(books) == 0")[0].help == "did you mean `size`?"


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60) | st.text("a.()[]{}'\"+-*/%<>=!&|?:,1 \n\\", max_size=60))
def test_any_text_is_answered(text: str) -> None:
    parse_verdict(text)
    free_names(text)
    with contextlib.suppress(VerdictError):
        assert judge(text, {"a": 1}) in (True, False)
