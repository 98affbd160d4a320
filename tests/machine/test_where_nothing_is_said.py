"""What holds where nobody says anything, and where lists and texts are cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from inspect import signature

import pytest
from vm_programs import PROGRAMS, program
from vm_runs import Run

from sopilot.machine.automation import Automation
from sopilot.machine.evidence import may_disturb
from sopilot.machine.layout import Limits, Programs
from sopilot.machine.recipes import wanted_calls
from sopilot.machine.state import NEVER, Configuration, Pending, Process
from sopilot.program.model import (
    ActionFacts,
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
from sopilot.trace.events import Call, DomainCall, DomainResult, Return, Start
from sopilot.values.json import JSON, plain, shown
from sopilot.views.step_tool import answer_text


@pytest.mark.parametrize(
    ("made", "defaults"),
    [
        (Limits, {"depth": 64, "steps": 10_000, "processes": 1_000}),
        (Return, {"holds": None, "evidence": (), "value": None, "undecided": False}),
        (DomainCall, {"licence": None, "amended": False}),
        (DomainResult, {"value": None, "unknown": False}),
        (Pending, {"heard": -1}),
        (Process, {"steps": 0, "ending": "", "results": ()}),
        (Configuration, {"active": None, "suspended": (), "next_seq": 0, "goal_seq": -1}),
        (wanted_calls, {"open_values": False, "optional": ()}),
        (answer_text, {"language": "en", "terse": False}),
        (plain, {"depth": 0}),
        (shown, {"width": 80}),
    ],
)
def test_what_is_taken_of_who_says_nothing(
    made: Callable[..., object], defaults: dict[str, object]
) -> None:
    given = {name: one.default for name, one in signature(made).parameters.items()}
    assert {name: given[name] for name in defaults} == defaults


def test_the_machine_does_nothing_by_itself_that_nobody_allowed() -> None:
    assert not any(astuple(Automation()))
    assert NEVER == -1


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


def test_outcomes_and_programs_are_equal_by_what_they_say() -> None:
    first, second = Run(PROGRAMS), Run(PROGRAMS)
    one, other = first.ok(Start("errand")), second.ok(Start("errand"))
    assert one == other
    assert "_answer" not in repr(one)
    facts = {"look": ActionFacts({})}
    here, there = (Programs({}, {}, Limits(), frozenset(), facts) for _ in "ab")
    assert may_disturb(here, "look", "look") is True
    assert here.disturbs
    assert here == there
