"""Verdicts that never guess: true, false, or undecided, which is neither."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sopilot.handbook.expressions import VerdictError, judge, parse_verdict
from sopilot.values.json import as_seen, look_the_same

UNDECIDED = None


def verdict(text: str, variables: dict[str, object]) -> bool | None:
    try:
        return judge(text, variables)
    except VerdictError:
        return UNDECIDED


CASES: list[tuple[str, object, bool | None]] = [
    # null, and what is missing
    ("x == 'frozen'", None, UNDECIDED),
    ("x != 'frozen'", None, UNDECIDED),
    ("!(x == 'frozen')", None, UNDECIDED),
    ("x.status == 'frozen'", {}, UNDECIDED),
    ("x.status != 'frozen'", {"status": None}, UNDECIDED),
    ("x[0] == 1", [], UNDECIDED),
    ("x < 1", None, UNDECIDED),
    ("x", None, UNDECIDED),
    ("has(x.closed) ? x.closed : true", {}, True),
    # a null that the author wrote
    ("x == null", None, True),
    ("x != null", None, False),
    ("x == null", "a", False),
    ("x == null", 0, False),
    ("x == [null, 1]", [None, 1], True),
    ("x in [null, 'a']", None, True),
    ("x == 'null'", "null", True),
    ("x.null_or_not == 1 // null", {"null_or_not": 1}, True),
    # across types
    ("x == '5000'", 5000, UNDECIDED),
    ("x == 5000", "5000", UNDECIDED),
    ("x == 1", True, UNDECIDED),
    ("x == []", {}, UNDECIDED),
    ("x < 1", "0", UNDECIDED),
    ("x <= 1", True, UNDECIDED),
    ("x > 'a'", 1, UNDECIDED),
    ("x >= x", [], UNDECIDED),
    ("x", "true", UNDECIDED),
    # one kind of number
    ("x == 5", 5.0, True),
    ("x / 2 > 2", 5, True),
    ("x / 2 > 2", 5.0, True),
    ("x / 2 == 2", 4, True),
    ("x % 3 == -1", -7, True),
    ("x % 2.5 == 0.5", 3, True),
    ("x in [5]", 5.0, True),
    ("{'a': 1} == x", {"a": 1.0}, True),
    ("x == 9007199254740993", 9007199254740992.0, False),
    ("x > 9007199254740992.0", 9007199254740993, True),
    # arithmetic
    ("x / 0 == 1", 1, UNDECIDED),
    ("x % 0 == 1", 1, UNDECIDED),
    ("x + 1 == 2", "1", UNDECIDED),
    ("x + 'b' == 'ab'", "a", True),
    ("x + [2] == [1, 2]", [1], True),
    ("x - 1 == 0", True, UNDECIDED),
    ("x * 2 == 2", None, UNDECIDED),
    ("x * x > 0", 2**62, UNDECIDED),
    ("x * 10.0 > 0.0", 1e308, UNDECIDED),
    # large integers, and numbers that are none
    ("x > 1", 2**63 - 1, True),
    ("x > 1", 2**63, UNDECIDED),
    ("x < 1", -(2**63) - 1, UNDECIDED),
    ("x > 1", float("nan"), UNDECIDED),
    ("!(x > 1)", float("nan"), UNDECIDED),
    ("x > 1", float("inf"), UNDECIDED),
    # pairs, years
    ("zip(x, ['a', 'b']).all(one, one[0] != one[1])", ["b", "a"], True),
    ("zip(x, ['a', 'b']).all(one, one[0] != one[1])", ["b", "b"], False),
    ("zip(x, ['a']).all(one, true)", ["b", "a"], UNDECIDED),
    ("zip(x, ['a']).all(one, true)", "b", UNDECIDED),
    ("zip(x, []) == []", [], True),
    ("year(x) == '2026'", "2026-12-31", True),
    ("lookup({'2026': 5}, year(x), 0) == 0", "2025-12-31T23:59:59Z", True),
    ("year(x) == '2026'", 2026, UNDECIDED),
    ("years_between(x, '2026-04-10T09:00:00+02:00') == 17", "2008-04-11", True),
    ("years_between(x, '2026-04-11T00:00:00+02:00') == 18", "2008-04-11", True),
    ("years_between(x, '2026-02-28') == 17", "2008-02-29", True),
    ("years_between(x, '2026-03-01') == 18", "2008-02-29", True),
    ("years_between(x, '2026-03-01') == -3", "2029-04-01", True),
    ("years_between(x, '2026-01-01T00:30:00+02:00') == 17", "2008-01-01T00:00:00Z", True),
    ("years_between(x, '2026-03-01') > 0", None, UNDECIDED),
    # lists of numbers, lengths of time
    ("min(x) == 1 && max(x) == 3 && sum(x) == 6", [2, 1, 3], True),
    ("max(x) == 3", [], UNDECIDED),
    ("max(x) == 3", [3, "4"], UNDECIDED),
    ("round(x, 2) == 1.01", 1.005, True),
    ("seconds_between(x, '2026-01-02T00:00:00Z') == 5400", "2026-01-01T22:30:00Z", True),
    ("hours_between(x, '2026-01-02T00:00:00Z') == 1.5", "2026-01-01T22:30:00Z", True),
    ("days_between(x, '2026-01-02T00:00:00Z') == -2", "2026-01-04T00:00:00Z", True),
    # lists
    ("'123' in x", [123], UNDECIDED),
    ("'a' in x", [1, None, "a"], True),
    ("'b' in x", [1, "a"], UNDECIDED),
    ("'b' in x", ["a", "c"], False),
    ("'b' in x", [], False),
    ("'b' in x", None, UNDECIDED),
    ("'b' in x", "abc", UNDECIDED),
    ("'k' in x", {"k": None}, True),
    ("1 in x", {"1": 1}, UNDECIDED),
    ("x == [1, 'a']", ["1", "b"], False),  # one pair that differs settles it
    ("x == [1, 'a']", ["1", "a"], UNDECIDED),
    ("x == [1]", [1, None], False),
    ("x.exists(i, i.n == 1)", [{"n": None}, {"n": 1}], True),
    ("x.all(i, i.n == 1)", [{"n": None}, {"n": 2}], False),
    ("x.all(i, i.n == 1)", [{"n": None}, {"n": 1}], UNDECIDED),
    # what one side settles
    ("x == 'a' || true", None, True),
    ("x == 'a' && false", None, False),
    ("x == 'a' || false", None, UNDECIDED),
    # text
    ("x in ['ok-1']", "ok-1\0evil", UNDECIDED),
    ("x.name == 'a'", {"name": "a", "k\0": 1}, UNDECIDED),
    ("x == 'a _==_ b'", "a _==_ b", True),
    ("x == 'me@inbox'", "me@inbox", True),
    # times
    ("timestamp(x) < timestamp('2026-01-02T00:00:00Z')", "2026-01-01T00:00:00Z", True),
    ("timestamp(x) == timestamp('2026-01-02T00:00:00Z')", "2026-01-02T01:00:00+01:00", True),
    ("timestamp(x) < timestamp('2026-01-02T00:00:00Z')", "tomorrow", UNDECIDED),
    ("timestamp(x) < x", "2026-01-01T00:00:00Z", UNDECIDED),
    # every function leaves open where equality does
    ("x.contains('ab')", "a\u200bb", UNDECIDED),
    ("x.contains('c')", "a\u200bb", False),
    ("x.contains('b')", "a\u200bb", True),
    ("!x.startsWith('SANCTIONED')", "SANCT\u00adIONED co", UNDECIDED),
    ("x.endsWith('.gov')", "tax.gov ", UNDECIDED),
    ("x.matches('^[A-Z]{2}$')", "AB\u2060", UNDECIDED),
    ("x.matches('^[A-Z]{2}$')", "AB", True),
    ("x['eve'] == 'blocked'", {"eve\u200b": "blocked"}, UNDECIDED),
    ("x['eve'] == 'blocked'", {"eve": "blocked", "eve\u200b": "free"}, UNDECIDED),
    ("has(x.frozen)", {"frozen\u200b": True}, UNDECIDED),
    ("has(x.frozen)", {"open": True}, False),
    ("size(x) == 3", "abc", True),
    ("size(x) == 3", "abc\u200b", UNDECIDED),
    ("x.matches == 'contains'", {"matches": "contains"}, True),
    ("x < 'ab'", "a\u200b", UNDECIDED),
]


@pytest.mark.parametrize(("text", "value", "expected"), CASES)
def test_verdict(text: str, value: object, expected: bool | None) -> None:
    assert verdict(text, {"x": value}) is expected
    assert parse_verdict(text) == ()


def test_times_are_compared_and_not_calculated_with() -> None:
    times = {"x": "2026-01-02T00:00:00Z", "y": "2026-01-01T00:00:00Z"}
    assert judge("timestamp(x) > timestamp(y)", times)
    for operator in "+-":
        with pytest.raises(VerdictError, match="number") as caught:
            judge(f"timestamp(x) {operator} timestamp(y) > duration('1h')", times)
        assert "datetime" not in str(caught.value)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool | str):
        return type(value).__name__
    return "number"


def _look_alike(left: object, right: object) -> bool:
    """By the definition: compatible forms, without signs that nobody sees and spaces around."""
    if not isinstance(left, str) or not isinstance(right, str) or left == right:
        return False
    shown = [unicodedata.normalize("NFKC", one) for one in (left, right)]
    return len({"".join(s for s in one if not _unseen(s)).strip() for one in shown}) == 1


_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point."""


def _unseen(sign: str) -> bool:
    """What screens leave out: ignorable signs, formats and controls, and the empty braille cell."""
    if _IGNORABLE.match(sign) or sign == "\u2800":
        return True
    return unicodedata.category(sign) in ("Cf", "Cc") and not sign.isspace()


@settings(deadline=None, max_examples=200)
@given(_SCALARS, _SCALARS)
@example("", "\r")
@example("", "\x1b")
@example("a", "a\u3164")
@example("a", "a ")
@example("\u00e9", "e\u0301")
@example("ab", "a\u200bb")
def test_equality_is_that_of_values_of_one_kind(left: object, right: object) -> None:
    values = {"a": left, "b": right}
    of_one_kind = _kind(left) == _kind(right) != "NoneType"
    told_apart = of_one_kind and not _look_alike(left, right)
    expected = (left == right) if told_apart else UNDECIDED
    assert verdict("a == b", values) is expected
    assert verdict("a != b", values) is (UNDECIDED if expected is None else not expected)
    assert verdict("a in [b]", values) is expected
    ordered = of_one_kind and not isinstance(left, bool)
    less = (left < right) if ordered else UNDECIDED  # type: ignore[operator]  # of one kind
    if isinstance(left, str) and isinstance(right, str):
        seen, other = as_seen(left), as_seen(right)
        same_order = (seen > other) - (seen < other) == (left > right) - (left < right)
        less = less if same_order else UNDECIDED
    assert verdict("a < b", values) is less
    assert verdict("b > a", values) is less
    assert verdict("!(a >= b)", values) is less


_READS_TEXT = (
    "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a in [b, 'other']",
    "a in {b: 1}", "[a] == [b]", "{a: 1} == {b: 1}", "string(a) == string(b)",
    "a.contains(b)", "a.startsWith(b)", "a.endsWith(b)", "a.matches(b)", "matches(a, b)",
    "a.contains //\n (b)", "size(a) == size(b)", "a.size() < b.size()",
    "m[a] == 1", "lookup(m, a, 2) == 1", "m == {a: 1}", "a in m", "'x' in m ? m['x'] == 1 : false",
    "has(m.x)", "m.x == 1", "m.`x` == 1", "m.exists(k, k == a)", "[a].exists_one(k, k == b)",
    "min([a, b]) == a", "max([a, b]) == b", "a.map(k, k) == b.map(k, k)",
)  # fmt: skip
_LETTERS = st.text(st.sampled_from("xyX \u00e9\u0301e\uff58\u200b\u2060\ufe0f\u00ad\t"), max_size=4)


@st.composite
def _spelled_twice(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and one that looks the same."""
    text = draw(_LETTERS)
    other = text
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(other)))
        other = other[:place] + draw(st.sampled_from("\u200b\u2060\u00ad")) + other[place:]
    other = unicodedata.normalize(draw(st.sampled_from(("NFC", "NFD", "NFKC"))), other)
    other = draw(st.sampled_from(("", " ", "\t"))) + other + draw(st.sampled_from(("", " ")))
    return (text, other) if look_the_same(text, other) else (text, text)


@pytest.mark.parametrize("text", _READS_TEXT)
@settings(deadline=None, max_examples=60)
@given(_spelled_twice(), _spelled_twice(), _spelled_twice())
@example(("x", "x"), ("x", "x\u200b"), ("x", "x "))
@example(("x\u200b", "x"), ("xy", "x\u200by"), ("x", "x"))
@example(("xy", "x\u200by"), ("x", "x"), ("x\u200b", "x"))
def test_a_look_alike_never_turns_a_verdict_round(
    text: str, left: tuple[str, str], right: tuple[str, str], key: tuple[str, str]
) -> None:
    """Whichever operand is replaced by one that looks the same."""
    verdicts = {
        verdict(text, {"a": a, "b": b, "m": {k: 1, "other": 2}})
        for a in left
        for b in right
        for k in key
    }
    assert not {True, False} <= verdicts
