"""Well-typed expressions mean the same to CEL's reference implementation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.expressions import VerdictError, compute, parse_verdict

cel = pytest.importorskip("cel_expr_python.cel")

VALUES: dict[str, object] = {
    "n": 7,
    "m": -3,
    "word": "order",
    "other": "ord",
    "open": True,
    "numbers": [3, 1, 7],
    "words": ["order", "refund"],
    "row": {"n": 5, "word": "paid"},
}


def _join(form: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda made: form.format(*made))


def _choose(*forms: str, **kinds: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Each form names the kinds of its parts: `{number} + {number}`."""
    made = []
    for form in forms:
        names = [part.split("}")[0] for part in form.split("{")[1:]]
        plain = form
        for name in names:
            plain = plain.replace(f"{{{name}}}", "{}", 1)
        made.append(_join(plain, *(kinds[name] for name in names)))
    return st.one_of(made)


_NUMBER = st.sampled_from(["n", "m", "row.n", "row['n']", "x"]) | st.integers(-9, 99).map(str)
_TEXT = st.sampled_from(["word", "other", "row.word", "'order'", '"a\\tb"', "r'a\\d'", "''"])
_TRUTH = st.sampled_from(["open", "true", "false", "has(row.n)", "has(row.none)"])


def _deeper(depth: int) -> dict[str, st.SearchStrategy[str]]:
    if depth == 0:
        lists = st.sampled_from(["numbers", "[1, 2, n]", "[]"])
        return {"number": _NUMBER, "text": _TEXT, "truth": _TRUTH, "list": lists}
    below = _deeper(depth - 1)
    return {
        "number": below["number"]
        | _choose(
            "({number} + {number})", "({number} - {number})", "({number} * {number})",
            "size({text})", "{list}.size()", "({truth} ? {number} : {number})", "-({number})",
            "numbers[{number}]", **below,
        ),
        "text": below["text"] | _choose("({text} + {text})", "words[{number}]", **below),
        "list": below["list"]
        | _choose(
            "({list} + {list})", "[{number}, {number}]", "{list}.map(x, {number})",
            "{list}.filter(x, {truth})", **below,
        ),
        "truth": below["truth"]
        | _choose(
            "({number} == {number})", "({number} != {number})", "({number} < {number})",
            "({number} >= {number})", "({text} == {text})", "({text} <= {text})",
            "({truth} && {truth})", "({truth} || {truth})", "!({truth})", "({list} == {list})",
            "({number} in {list})", "({text} in words)", "{text}.contains({text})",
            "{text}.startsWith({text})", "{text}.endsWith({text})", "{text}.matches('^o[a-z]+r$')",
            "{list}.all(x, {truth})", "{list}.exists(x, {truth})", "{list}.exists_one(x, {truth})",
            "({truth} ? {truth} : {truth})", **below,
        ),
    }  # fmt: skip


_ENVIRONMENT = cel.NewEnv(variables=dict.fromkeys((*VALUES, "x"), cel.Type.DYN))


def by_cel(text: str) -> object:
    answer = _ENVIRONMENT.compile(text, disable_check=True).eval(data={**VALUES, "x": 2})
    return None if str(answer.type()) == "ERROR" else answer.plain_value()


def by_us(text: str) -> object:
    try:
        return compute(text, {**VALUES, "x": 2})
    except VerdictError:
        return None


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(["truth", "number", "text", "list"]).flatmap(lambda kind: _deeper(3)[kind]))
def test_both_give_the_same_value(text: str) -> None:
    assert parse_verdict(text, truth=False) == ()
    assert by_us(text) == by_cel(text)
