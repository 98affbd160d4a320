"""Values in expressions: numbers as they are written, texts as they look, moments in time."""

from __future__ import annotations

import pytest

from sopilot.handbook.expressions import VerdictError, judge
from sopilot.values.json import JSON
from sopilot.values.schema import violation

JOSE, SPELLED = "Jos\u00e9", "Jose\u0301"
NOON = "2026-01-31T11:00:00+00:00"
NUMBERS: list[tuple[str, bool | None]] = [
    ("round(12345678.91, 2) == 12345678.91", True),
    ("round(1.005, 2) == 1.01", True),
    ("round(-2.5, 0) == -3", True),
    ("round(9007199254740993, 0) == 9007199254740993", True),
    ("round(0.4999999999, 0) == 0", True),
    ("round(1.15 * 3, 1) == 3.5", True),
    ("0.7 + 0.1 == 0.8", True),
    ("0.7 + 0.1 < 0.8", False),
    ("sum([0.1, 0.2]) == 0.3", True),
    ("0.4 - 0.1 == 0.3", True),
    ("1.1 * 3 == 3.3", True),
    ("4.35 * 100 == 435", True),
    ("0.3 / 0.1 == 3", True),
    ("0.3 % 0.1 == 0", True),
    ("-0.3 % 0.2 == -0.1", True),
    ("9007199254740992.0 + 1 == 9007199254740993", True),
    ("1.0 / 3 * 3 == 1", True),
    ("1e300 * 1.5 == 1.5e300", True),
    ("1e308 * 1e10 > 0.5", None),
    ("1e300 / 1e-300 > 0.5", None),
    *(
        (f"double('{text}') {compared}", None)
        for text in ("nan", "-inf", "inf")
        for compared in ("> 1000.0", "== 5.0", "in [1.0, 2.0]")
    ),
    ("'2026' < null", None),
    ("'2026' > null", None),
    ("null + 'a' == '2026'", None),
]


def holds(expression: str, variables: dict[str, JSON]) -> bool | None:
    try:
        return judge(expression, variables)
    except VerdictError:
        return None


@pytest.mark.parametrize(("expression", "expected"), NUMBERS)
def test_numbers_are_calculated_with_as_they_are_written(
    expression: str, expected: bool | None
) -> None:
    assert holds(expression, {}) is expected


@pytest.mark.parametrize(
    ("expression", "until", "expected"),
    [
        ("until > now", "2026-02-01T00:30:00+14:00", None),  # half an hour ago
        ("until <= now", "2026-02-01T00:30:00+14:00", None),
        ("until > now", "2026-01-31T11:00:00.5Z", True),
        ("until > now", "2026-01-31T11:00:00.5+00:00", True),
        ("until == now", "2026-01-31T11:00:00Z", None),
        ("until == now", "2026-02-01T00:30:00+14:00", False),
        ("until > now", "2026-02-02T00:30:00+14:00", True),
        ("until > now", "2026-02-01", True),
        ("until > now", "2026-01-30", False),
        ("max([until, now]) == now", "2026-02-01T00:30:00+14:00", None),
        ("until > now", "never", True),
    ],
)
def test_a_time_in_text_is_not_later_than_by_the_clock(
    expression: str, until: str, expected: bool | None
) -> None:
    assert holds(expression, {"until": until, "now": NOON}) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^[A-Z]{3}$", "ABC", True),
        ("^[A-Z]{3}$", "ABC\n", False),
        (r"^\d{4}$", "١٢٣٤", False),
        (r"^\w+ [a-z]+$", "pay ann\n", False),
        (r"^a\$[$]$", "a$$", True),
        ("(", "x", False),
    ],
)
def test_a_pattern_means_what_it_means_in_json_schema(pattern: str, text: str, fits: bool) -> None:
    schema: dict[str, object] = {"type": "string", "pattern": pattern}
    assert (violation(text, schema) is None) is fits
