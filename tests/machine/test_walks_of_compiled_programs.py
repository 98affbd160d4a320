"""Compiled programs on the machine: it accepts exactly where the handbook says so."""

from __future__ import annotations

import random

import pytest
from reference_schedule import leaf_set, truth
from test_guard_closure import augmented, guarded_case
from vm_runs import Run

from sopilot.machine.automation import Automation
from sopilot.machine.replay import replay
from sopilot.machine.state import Status
from sopilot.program.model import Program
from sopilot.trace.events import Call, Complete, Fail, Return, SelectBranch, Start, UserSaid

VALUES = {"x": "<x>", "y": "<y>"}
Truths = dict[tuple[str, object], bool]


def execute(program: Program, truths: Truths, automation: Automation) -> Run:
    """Follow what fits, and judge every rule by the assignment."""
    run = Run({"goal": program})
    run.ok(Start("goal", VALUES))
    for _ in range(400):
        run.automate(automation)
        here = run.machine.position(run.configuration)
        if here is None:
            return run
        shape = run.machine.fits(run.configuration)[0]
        function = here.layout.function
        values = tuple((name, here.frame.locals[name]) for name in function.parameters)
        verdict = truths.get((function.predicate or "", values))
        match shape["operation"]:
            case "call":
                run.ok(Call())
            case "select_branch":
                run.ok(SelectBranch(shape["option"]))
            case "return":
                run.ok(Return(shape.get("holds", verdict)))
            case "ask_user":
                run.ok(UserSaid("here you are"))
            case "domain_call":
                # A gate that does not hold is one whose action is refused.
                refused = function.kind == "gate" and verdict is False
                arguments = {**shape["arguments"], **dict.fromkeys(shape["missing"], "x")}
                run.tool(shape["action"], ok=not refused, **arguments)
                if refused:
                    run.ok(Return(False))
            case "complete":
                run.ok(Complete())
            case _:
                run.ok(Fail("refused"))
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize("seed", range(200))
def test_the_goal_is_reached_exactly_when_the_requirement_holds(seed: int) -> None:
    dice = random.Random(seed)
    case = guarded_case(dice)
    reference = augmented(case)
    truths = {
        key: dice.random() < 0.75 for key in sorted({leaf[:2] for leaf in leaf_set(reference)})
    }
    by_itself = dice.random() < 0.5
    automation = Automation(take_branches=by_itself, group_returns=by_itself, enter_calls=by_itself)
    program = case.compiled.program
    run = execute(program, truths, automation)
    holds = truth(reference, truths.__getitem__)
    assert (run.configuration.processes["p1"].status is Status.COMPLETED) == holds
    assert (run.configuration.goal_seq >= 0) == holds
    assert run.events[-1].payload["accepting"] is True
    assert replay({"goal": program}, run.events) == run.configuration
    assert [event for event in run.events if event.kind == "rejected"] == []
    gates = [
        event.payload["function"]
        for event in run.events
        if event.kind == "return"
        and event.payload["bound"]["holds"]
        and str(event.payload["function"]).startswith("g")
    ]
    assert len(gates) == len(set(gates)), "an open gate is not opened again"
