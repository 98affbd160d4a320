"""Other people's expressions and patterns: bounded in time and memory, and undecided beyond."""

from __future__ import annotations

import os
import resource
import time

import pytest

from sopilot.handbook.expressions import VerdictError, judge, parse_verdict
from sopilot.values import patterns as bounded
from sopilot.values.schema import violation

MANY, LONG = list(range(9000)), list(range(10000))
COSTLY = {
    "a value again and again": ("a.map(x, b) == [1]", {"a": MANY, "b": LONG}),
    "doubled lists": ("[1]" + ".map(a, [a, a])" * 28 + " == [[1]]", {}),
    "doubled texts": ("['x']" + ".map(a, a + a)" * 28 + " == ['x']", {}),
    "loops in loops": ("a.all(x, b.all(y, b == a || x + y >= 0))", {"a": MANY, "b": LONG}),
}


def worker_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


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
        "a text has a NUL character in it"
    ]
    with pytest.raises(VerdictError, match="NUL"):
        judge(text, {"a": "x"})
    assert judge(r"a == 'x\\x00y'", {"a": r"x\x00y"})


def test_a_pattern_that_would_take_years_refuses_the_value() -> None:
    before = worker_seconds()
    problem = violation("a" * 60 + "b", {"type": "string", "pattern": "^(a+)+$"}, "`name`")
    assert problem == "`name` cannot be matched with its pattern: it takes too much time or memory"
    assert worker_seconds() - before < 3 * bounded.CPU_SECONDS
    assert violation("aaa", {"pattern": "^(a+)+$"}) is None
    assert violation("b", {"pattern": "^(a+)+$"}) == (
        "the content does not have the form that it must have"
    )
    assert violation("b", {"pattern": "(a"}) == "the content has a pattern that cannot be read"


def test_a_worker_that_died_is_replaced_and_a_fork_has_its_own() -> None:
    cards = {"cards": [{"id": number} for number in range(3000)]}
    text = "cards.exists(card, card.id == 7)"
    assert judge(text, cards)
    assert bounded._worker is not None
    os.kill(bounded._worker._process.pid, 9)
    with pytest.raises(VerdictError):
        judge(text, cards)
    assert judge(text, cards)
    child = os.fork()
    if child == 0:
        os._exit(0 if judge(text, cards) else 1)
    time.sleep(0.01)
    assert judge(text, cards)
    assert os.waitpid(child, 0)[1] == 0
