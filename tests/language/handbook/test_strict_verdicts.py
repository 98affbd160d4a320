"""Verdicts that never guess: true, false, or undecided, which is neither."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sopilot.language.handbook import VerdictError, judge, parse_verdict
from sopilot.language.handbook._strict_operators import NULL_SIGN, RENAMED, STRICT

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
    ("x == null", NULL_SIGN, UNDECIDED),
    ("x == 'a _==_ b'", "a _==_ b", True),
    ("x == 'me@inbox'", "me@inbox", True),
    # times
    ("timestamp(x) < timestamp('2026-01-02T00:00:00Z')", "2026-01-01T00:00:00Z", True),
    ("timestamp(x) == timestamp('2026-01-02T00:00:00Z')", "2026-01-02T01:00:00+01:00", True),
    ("timestamp(x) < timestamp('2026-01-02T00:00:00Z')", "tomorrow", UNDECIDED),
    ("timestamp(x) < x", "2026-01-01T00:00:00Z", UNDECIDED),
]


@pytest.mark.parametrize(("text", "value", "expected"), CASES)
def test_verdict(text: str, value: object, expected: bool | None) -> None:
    assert verdict(text, {"x": value}) is expected
    assert parse_verdict(text) == []


def test_times_are_compared_and_not_calculated_with() -> None:
    times = {"x": "2026-01-02T00:00:00Z", "y": "2026-01-01T00:00:00Z"}
    assert judge("timestamp(x) > timestamp(y)", times)
    for operator in "+-":
        with pytest.raises(VerdictError, match="number") as caught:
            judge(f"timestamp(x) {operator} timestamp(y) > duration('1h')", times)
        assert "datetime" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "x == '_==_'",
        'x == "@in"',
        "x == '''_+_'''",
        r"x == '\x5f==_'",
        r"x == '\u005f==_'",
        r"x == '\137==_'",
        r"x == 'a\x04_==_'",
    ],
)
def test_a_text_that_is_spelled_like_an_operator_is_refused(text: str) -> None:
    """The operators are renamed in the parsed form, where a text looks the same."""
    assert parse_verdict(text)[0].message == "a text is spelled like an operator"
    with pytest.raises(VerdictError, match="spelled like an operator"):
        judge(text, {"x": "s_eq"})


@pytest.mark.parametrize("text", ["x && 1", "1 && 2", "x % 'a' == 1", "'a' < 1", "x ? 1 : 2"])
def test_what_can_never_be_judged_is_told_when_it_is_read(text: str) -> None:
    assert parse_verdict(text)


def test_a_strict_name_is_as_long_as_the_operator() -> None:
    assert all(len(plain) == len(strict) for plain, strict in RENAMED)
    assert {strict[1:].decode() for _, strict in RENAMED} == set(STRICT)


def test_a_value_that_is_too_deep_is_undecided() -> None:
    deep: object = 1
    for _ in range(70):
        deep = [deep]
    with pytest.raises(VerdictError, match="nested deeper than 64"):
        judge("size(x) == 1", {"x": deep})
    with pytest.raises(VerdictError, match="nested deeper than 64"):
        judge("true", {"x": deep})


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
    assert verdict("a < b", values) is less
    assert verdict("b > a", values) is less
    assert verdict("!(a >= b)", values) is less


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("x.back", [{"back": True}], "a field is read of a value that has none"),
        ("x.opn", {"open": True}, "there is no field `opn`"),
        ("x <= '300'", 80, "a number and a text have no order"),
        ("x == 80", "80", "a text is compared with a number"),
        ("x == 80", True, "true or false is compared with a number"),
        ("x == 80", [80], "a list is compared with a number"),
    ],
)
def test_why_a_verdict_is_undecided_is_told_in_words(text: str, value: object, why: str) -> None:
    with pytest.raises(VerdictError, match=why):
        judge(text, {"x": value})
