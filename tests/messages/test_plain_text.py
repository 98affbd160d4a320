"""Plain lines for people: what stands in a table, and what hides in it."""

from __future__ import annotations

from sopilot.values.text import counted, moment, table


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    rows = [("pg", 7, "12.5%"), ("flat", 1_200, "–")]
    assert table(rows, ("view", "requests", "rate")).splitlines() == [
        "view  requests  rate",
        "----  --------  -----",
        "pg           7  12.5%",
        "flat      1200  –",
    ]


def test_nothing_of_others_breaks_a_row() -> None:
    shown = table([("a\nb\x1b[31m",)], ("name",))
    assert len(shown.splitlines()) == 3
    assert "\x1b" not in shown


def test_counts_and_moments() -> None:
    assert [counted(number, "task") for number in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
    assert moment(0) == "1970-01-01T00:00:00Z"
