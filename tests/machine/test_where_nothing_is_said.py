"""What holds where nobody says anything, and where lists and texts are cut."""

from __future__ import annotations

import pytest
from vm_programs import program
from vm_runs import Run

from sopilot.machine.automation import Automation
from sopilot.program.model import (
    Check,
    Choose,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Local,
    Option,
    ReturnStep,
)
from sopilot.trace.events import Call, Start
from sopilot.values.json import JSON
from sopilot.views.step_tool import answer_text


@pytest.mark.parametrize(("options", "told"), [(6, 7), (7, 8), (8, 8), (20, 8)])
def test_so_many_operations_that_fit_are_told(options: int, told: int) -> None:
    """The options of a choice, and that one may give up."""
    names = [f"way{number}" for number in range(options)]
    choice = Choose("pick", "Which?", tuple(Option(name, "finish") for name in names))
    root = Function("go", Kind.PROCESS, (), (choice, CompleteStep("finish")))
    run = Run({"go": program("go", root)})
    text = answer_text(run.ok(Start("go")))
    every = [f"select_branch {name}" for name in names] + ["fail"]
    assert [one for one in every if one in text] == every[:told]
    assert ("…" in text) is (options + 1 > told)


def by_itself(**locals_: JSON) -> tuple[list[dict[str, JSON]], str]:
    """What a verdict is asked over an optional value, and where the process stands then."""
    rule = Function(
        "fits",
        Kind.RULE,
        ("size", "note"),
        (ReturnStep("judge"),),
        predicate="fits",
        verdict="size > 1",
        optional=("note",),
    )
    given = (("size", Local("size")), ("note", Local("note")))
    steps = (Check("first", "fits", given, "fits", unmet="no"), CompleteStep("yes"), FailStep("no"))
    root = Function("go", Kind.PROCESS, ("size", "note"), steps)
    run = Run({"go": program("go", root, rule, constants={"largest": 9})})
    run.ok(Start("go", locals_))
    run.ok(Call("fits"))
    asked: list[dict[str, JSON]] = []

    def judge(expression: str, variables: object) -> bool:
        assert isinstance(variables, dict)
        asked.append(variables)
        return expression == "size > 1"

    run.settle(Automation(machine_verdicts=True), judge)
    return asked, run.place


def test_a_value_that_may_be_left_out_is_null_to_a_verdict_and_another_is_waited_for() -> None:
    nothing: dict[str, JSON] = {"largest": 9, "results": {}, "result": None}
    assert by_itself(size=5) == ([{"size": 5, "note": None, **nothing}], "go@yes")
    assert by_itself(size=5, note="n") == ([{"size": 5, "note": "n", **nothing}], "go@yes")
    assert by_itself(note="n") == ([], "go/fits@judge")
