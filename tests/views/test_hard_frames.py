"""Frames of hard procedures, word for word. ``SOPILOT_REGOLD=1`` rewrites them.

``hard.yaml`` has the shapes of the SOPBench tasks that strong readers found hardest.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.views.frame import render_function

HERE = Path(__file__).parent
HANDBOOK = load_handbook((HERE / "hard.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("goal", "function"),
    [
        ("book", "book"),
        ("move", "move"),
        ("book_plainly", "overlaps"),
        ("order_meal", "order_meal"),
        ("see_doctor", "see_doctor"),
        ("claim", "at_desk"),
        ("take_test", "take_test"),
        ("enrol", "enrol"),
    ],
)
def test_frame(goal: str, function: str) -> None:
    program = compile_procedure(HANDBOOK, goal).program
    text = render_function(program.functions[function], program)
    golden = HERE / "goldens" / "hard" / f"{goal}.{function}.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("goal", "group"),
    [
        ("book", "first_of_not_dates_fit_not_stays_too_long"),
        ("move", "first_of_not_dates_fit_not_has_stay"),
    ],
)
def test_a_group_that_earlier_checks_decide_is_dropped(goal: str, group: str) -> None:
    assert group not in compile_procedure(HANDBOOK, goal).program.functions
