"""Places that few runs come by: limits to the step, programs that changed, calls by halves."""

from __future__ import annotations

import pytest
from vm_programs import PROGRAMS, program
from vm_runs import ARGUMENTS, Run

from sopilot.handbook.requirements import Path
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Local,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.trace.events import Call, Complete, Fail, Return, Start

# --- limits ---------------------------------------------------------------------------


def test_the_last_step_that_a_process_may_take() -> None:
    for limit in (3, 4):
        run = Run(PROGRAMS, Limits(steps=limit))
        run.ok(Start("transfer", ARGUMENTS))  # 1
        run.ok(Call())  # 2
        run.ok(Return(True))  # 3
        assert (run.do(Call()).accepted, limit) in ((False, 3), (True, 4))
        assert run.configuration.processes["p1"].steps == limit
        refused = run.do(Call()).refusal
        assert refused["code"] == "steps-exceeded"
        assert refused["reason"] == f"this process took {limit} steps; only `fail` is allowed now"
        run.ok(Fail("enough"))


def test_what_a_start_would_lead_to_is_not_recorded() -> None:
    machine = Machine(PROGRAMS)
    found = machine.suppose(machine.initial(), Start("transfer", {"to": "eve"}), at=0.0)
    assert found is not None
    assert found.frame is not None
    assert found.frame.locals == {"to": "eve"}
    assert machine.suppose(found, Start("transfer", {"to": "eve"}), at=0.0) is None


# --- verdicts taken over --------------------------------------------------------------


@pytest.mark.parametrize("asks", [False, True])
def test_a_verdict_on_values_alone_stands_unless_the_user_is_asked(asks: bool) -> None:
    asked: tuple[Step, ...] = (Ask("ask", ("mood",)),) if asks else ()
    small = Function("small", Kind.RULE, ("n",), (*asked, ReturnStep("end")), predicate="small")
    terms = (("n", Local("n")),)
    steps = (
        Check("a", "small", terms, "a", unmet="no"),
        Check("b", "small", terms, "b", unmet="no"),
        CompleteStep("done"),
        FailStep("no"),
    )
    run = Run({"go": program("go", Function("go", Kind.PROCESS, ("n",), steps), small)})
    run.ok(Start("go", {"n": 1}))
    run.ok(Call())
    run.ok(Return(True))
    run.automate(Automation(reuse_verdicts=True))
    assert run.place == ("go@b" if asks else "go@done")
    if not asks:
        assert run.events[-1].payload["ground"] == "judged for the same values already (#2)"
        run.ok(Complete())


# --- linked recipes -------------------------------------------------------------------

LIST = Act("list", "list_orders", (("user", Local("user")),), name="orders")
EACH = Act(
    "each", "read_order", (("id", Path("one", ("id",))), ("as", Unknown("who"))),
    each=Path("orders", ("ids",)), element="one",
)  # fmt: skip
RULE = Function(
    "fine", Kind.RULE, ("user",), (LIST, EACH, ReturnStep("end")), predicate="fine", verdict="true"
)


def in_linked() -> Run:
    check = Check("c", "fine", (("user", Local("user")),), "s", unmet="no")
    steps = (check, CompleteStep("done"), FailStep("no"))
    run = Run({"go": program("go", Function("go", Kind.PROCESS, ("user",), steps), RULE)})
    run.ok(Start("go", {"user": "ann"}))
    run.ok(Call())
    return run


def test_calls_that_look_into_an_answer() -> None:
    run = in_linked()
    assert run.machine.fits(run.configuration)[0] == {
        "operation": "domain_call", "action": "list_orders", "arguments": {"user": "ann"},
        "missing": [],
    }  # fmt: skip
    run.tool("list_orders", {"ids": [{"id": 7}, {"id": 8}]}, user="bob")
    assert run.place.endswith("@list")
    run.tool("list_orders", {"ids": [{"id": 7}, {"id": 8}]}, user="ann")
    assert run.place.endswith("@each")
    shape = run.machine.fits(run.configuration)[0]
    assert (shape["arguments"], shape["missing"]) == ({"id": 7}, ["as"])
    run.tool("read_order", 1, id=7, **{"as": "me"})
    assert run.place.endswith("@each")
    assert run.machine.fits(run.configuration)[0]["arguments"] == {"id": 8}
    run.tool("read_order", 1, id=9)
    assert run.place.endswith("@each")
    run.tool("read_order", 1, id=8, **{"as": "me"})
    assert run.place.endswith("@end")
