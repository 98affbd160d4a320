"""`design/frames.md` shows what a model would read today."""

from __future__ import annotations

import re
from pathlib import Path

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.views.frame import render_function

HERE = Path(__file__).parent
DOCUMENT = (HERE.parents[1] / "design" / "frames.md").read_text(encoding="utf-8")
PAIR = re.compile(r"After \(`(\w+)`, `(\w+)`\):\n\n```text\n(.*?)\n```", re.DOTALL)
GONE = re.compile(r"Gone \(`(\w+)`, `(\w+)`\): ")
HANDBOOK = load_handbook((HERE / "hard.yaml").read_text(encoding="utf-8"))


def test_the_frames_of_the_document_are_today_s() -> None:
    shown = PAIR.findall(DOCUMENT)
    gone = GONE.findall(DOCUMENT)
    assert (len(shown), len(gone)) == (8, 2)
    for goal, function in gone:
        assert function not in compile_procedure(HANDBOOK, goal).program.functions
    for goal, function, text in shown:
        program = compile_procedure(HANDBOOK, goal).program
        assert render_function(program.functions[function], program).rstrip() == text
