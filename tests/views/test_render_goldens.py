"""What a model sees of small handbooks, word for word. ``SOPILOT_REGOLD=1`` rewrites it.

``hard.yaml`` has the shapes of the SOPBench tasks that strong readers found hardest.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.state import Bound
from sopilot.messages.scaffold import LANGUAGES, StepTool
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import Ask
from sopilot.views.frame import render_frame, render_function, shown_names
from sopilot.views.program_text import RENDERINGS, render

HERE = Path(__file__).parent


def _read(name: str) -> Handbook:
    return load_handbook((HERE / name).read_text(encoding="utf-8"), name)


HANDBOOK, TRAVEL, HARD = _read("small.yaml"), _read("travel.yaml"), _read("hard.yaml")
PROGRAM = compile_procedure(HANDBOOK, "redirect").program
CANCEL = compile_procedure(TRAVEL, "cancel").program
ALL_STEPS = program_from_yaml(
    (HERE.parent / "program" / "listings" / "all-steps.yaml").read_text(encoding="utf-8")
)


def _check(name: str, text: str) -> None:
    golden = HERE / "goldens" / f"{name}.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RENDERINGS)
def test_rendering(name: str, language: str) -> None:
    _check(
        f"{name}.{language}",
        render(name, HANDBOOK, HANDBOOK.procedures["redirect"], PROGRAM, language),
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions(language: str) -> None:
    functions = [render_function(f, PROGRAM, language) for f in PROGRAM.functions.values()]
    _check(f"functions.{language}", "\n".join(functions))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["flat", "prose", "official-recipes"])
def test_paths_elements_and_names(name: str, language: str) -> None:
    """What a recipe takes from its earlier answers, in every way that a call is shown."""
    _check(
        f"travel-{name}.{language}",
        render(name, TRAVEL, TRAVEL.procedures["cancel"], CANCEL, language),
    )


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
def test_hard_functions(goal: str, function: str) -> None:
    program = compile_procedure(HARD, goal).program
    _check(f"hard/{goal}.{function}", render_function(program.functions[function], program))


@pytest.mark.parametrize(
    ("goal", "group"),
    [
        ("book", "first_of_not_dates_fit_not_stays_too_long"),
        ("move", "first_of_not_dates_fit_not_has_stay"),
    ],
)
def test_a_group_that_earlier_checks_decide_is_dropped(goal: str, group: str) -> None:
    assert group not in compile_procedure(HARD, goal).program.functions


def test_a_frame_in_the_middle_of_a_run() -> None:
    results = {
        "owns": Bound(True, (12,), 1, "owns"),
        "delivered": Bound(False, (12, 15, 17, 18, 20, 21), 2, "delivered", "late"),
    }
    known = {"customer": "ann", "parcel": 7, "mood": "not the function's business"}
    _check("middle.en", render_frame(PROGRAM, "redirect", "check_plausible", results, known))


@pytest.mark.parametrize("tool", [StepTool(), StepTool("step", short=True)], ids=["long", "short"])
def test_every_kind_of_step_says_what_to_do(tool: StepTool) -> None:
    said = []
    for function in ALL_STEPS.functions.values():
        for step in function.steps:
            wanted = step.wants if isinstance(step, Ask) else ()
            known = {name: "x" for name in shown_names(function) if name not in wanted}
            frame = render_frame(ALL_STEPS, function.name, step.label, {}, known, tool=tool)
            said.append(f"{type(step).__name__}: {frame.splitlines()[-1]}\n")
    text = "".join(dict.fromkeys(said))
    assert not (tool.short and "operation" in text)
    _check(f"steps-{'short' if tool.short else 'long'}.en", text)
