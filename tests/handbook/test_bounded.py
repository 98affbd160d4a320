"""Other people's expressions and patterns: bounded in time and memory, and undecided beyond."""

from __future__ import annotations

import resource
import time

import pytest

from sopilot.handbook.expressions import VerdictError, judge, parse_verdict
from sopilot.values.schema import violation

MANY, LONG = list(range(9000)), list(range(10000))
COSTLY = {
    "a value again and again": ("a.map(x, b) == [1]", {"a": MANY, "b": LONG}),
    "doubled lists": ("[1]" + ".map(a, [a, a])" * 28 + " == [[1]]", {}),
    "doubled texts": ("['x']" + ".map(a, a + a)" * 28 + " == ['x']", {}),
    "a large map again and again": (
        "a.all(x, m.k0 == 1)",
        {"a": MANY[:500], "m": {f"k{at}": 1 for at in range(5000)}},
    ),
    "loops in loops": ("a.all(x, b.all(y, b == a || x + y >= 0))", {"a": MANY, "b": LONG}),
}


@pytest.mark.parametrize("name", COSTLY)
def test_an_expression_that_costs_too_much_is_undecided(name: str) -> None:
    text, data = COSTLY[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(VerdictError):
        judge(text, data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    assert judge("a.exists(x, x == 3)", {"a": [1, 2, 3]})


def test_a_large_answer_is_judged_all_the_same() -> None:
    cards = [{"id": number} for number in range(3000)]
    assert judge("cards.exists(card, card.id == 2999)", {"cards": cards})
    assert not judge("cards.exists(card, card.id == 3000)", {"cards": cards})


@pytest.mark.parametrize(
    "text", ["a == 'x\0y'", r"a == 'x\x00y'", r"a == 'x\u0000'", r"'\000' == a"]
)
def test_a_text_is_not_cut_at_nul(text: str) -> None:
    assert [problem.message for problem in parse_verdict(text)] == [
        "a string has a NUL character in it"
    ]
    with pytest.raises(VerdictError, match="NUL"):
        judge(text, {"a": "x"})
    assert judge(r"a == 'x\\x00y'", {"a": r"x\x00y"})


def test_a_pattern_takes_linear_time() -> None:
    before = time.process_time()
    wrong = "`name` has the wrong form"
    assert violation("a" * 5_000 + "b", {"pattern": "^(a+)+$"}, "`name`") == wrong
    assert time.process_time() - before < 1
    assert violation("aaa", {"pattern": "^(a+)+$"}) is None
    assert violation("a\n", {"pattern": "^a$"}) is not None
    assert violation("\u00e9", {"pattern": r"^\u00e9$"}) is None
    for pattern in ("(a", "(?=a)", r"(a)\1"):
        problem = "the content has a pattern that cannot be read"
        assert violation("b", {"pattern": pattern}) == problem
