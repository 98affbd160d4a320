"""Result files: which rows are read, and how mistakes in them are reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics import reading
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind

GOOD = {"task": "t", "goal": "g", "kind": "execute", "passed": True}


def told(*given: dict[str, Any]) -> list[tuple[str, str, str, int | None]]:
    with pytest.raises(UserMistake) as refused:
        reading.outcomes_from(reading.read_rows(json.dumps(list(given)), "f.json"))
    return [
        (one.code, one.message, one.place.path, one.place.line)
        for one in refused.value.diagnostics
        if one.place is not None
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": ""}, '`task` must be a text, not `""`'),
        ({"goal": 1}, "`goal` must be a text, not `1`"),
        ({"arm": 1}, "`arm` must be a text, not `1`"),
        ({"kind": "x"}, '`kind` must be `execute` or `refuse`, not `"x"`'),
        ({"passed": 1}, "`passed` must be `true`, `false` or `null`, not `1`"),
        ({"run": True}, "`run` must be a count, not `true`"),
        ({"run": -1}, "`run` must be a count, not `-1`"),
        ({"post_goal_calls": 1.5}, "`post_goal_calls` must be a count or `null`, not `1.5`"),
        ({"post_goal_calls": "x" * 38}, f'a count or `null`, not `"{"x" * 38}"`'),
        ({"post_goal_calls": "x" * 39}, f'a count or `null`, not `"{"x" * 39}…`'),
    ],
)
def test_a_field_of_the_wrong_kind(change: dict[str, Any], message: str) -> None:
    (first,) = told({**GOOD, **change})
    assert (first[0], first[2]) == ("bad-field", "[0]")
    assert first[1].endswith(message)


def test_what_is_missing_is_told_of_every_row() -> None:
    found = told(GOOD, {"tsk": "t"})
    assert [(one[0], one[1], one[2]) for one in found] == [
        ("missing-field", "`task` is missing (a text)", "[1]"),
        ("missing-field", "`goal` is missing (a text)", "[1]"),
        ("missing-field", "`kind` is missing (`execute` or `refuse`)", "[1]"),
        ("missing-field", "`passed` is missing (`true`, `false` or `null`)", "[1]"),
    ]


def test_what_may_be_left_out_and_what_may_be_null() -> None:
    (bare,) = reading.outcomes_from(reading.read_rows(json.dumps(GOOD)))
    assert bare == RunOutcome(task="t", goal="g", kind=TaskKind.EXECUTE, passed=True)
    more = {**GOOD, "passed": None, "arm": None, "run": 0, "post_goal_calls": 0, "model": "m"}
    (full,) = reading.outcomes_from(reading.read_rows(json.dumps({"outcomes": [more]})))
    assert (full.passed, full.arm, full.run, full.post_goal_calls) == (None, "", 0, 0)


def test_rows_that_differ_in_tools_are_models_apart() -> None:
    def models(*changes: dict[str, Any]) -> list[str]:
        text = json.dumps([{**GOOD, **one} for one in changes])
        return [one.model for one in reading.outcomes_from(reading.read_rows(text))]

    assert models({"model": "m", "tools": "a"}, {"model": "m", "tools": "a"}) == ["m", "m"]
    assert models({"model": "m", "tools": "a"}, {"model": "m"}) == [
        "m (tools a)", "m (tools None)",
    ]  # fmt: skip
    assert models({"tools": "a", "user": 1}, {"tools": "b", "user": 2}) == [
        "(tools a, user 1)", "(tools b, user 2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"a": 1}\nno\n\n[1', [("not-json", 2), ("not-json", 4)]),
        ("[1]", [("not-an-object", 0)]),
        ("[]", [("empty", 0)]),
        ("", [("empty", 0)]),
        ('{"outcomes": 1}', [("not-an-object", 0)]),
        ("NaN\n{}", [("not-json", 1)]),
    ],
)
def test_what_is_no_file_of_rows(text: str, places: list[tuple[str, int | None]]) -> None:
    with pytest.raises(UserMistake) as refused:
        reading.read_rows(text, "f")
    found = [(one.code, one.place.line if one.place else None) for one in refused.value.diagnostics]
    assert found == places


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"goal": "", "wins": 1, "losses": 1}, ["goal"]),
        ({"goal": 1, "wins": -1, "losses": 1}, ["goal", "wins"]),
        ({"goal": "g", "wins": True, "losses": "1"}, ["wins", "losses"]),
    ],
)
def test_wins_and_losses_that_are_none(row: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(UserMistake) as refused:
        reading.discordances_from(reading.read_rows(json.dumps(row)))
    assert [one.message.split("`")[1] for one in refused.value.diagnostics] == names
