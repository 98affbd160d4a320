"""Nothing is asked twice in a process, and a wrong start is mended in place."""

from __future__ import annotations

from typing import Any

import pytest
from vm_programs import program
from vm_runs import Run as AnyRun

from sopilot.audit.audit import audit_trace
from sopilot.machine.automation import Automation
from sopilot.machine.machine import Machine, Outcome
from sopilot.machine.replay import replay
from sopilot.machine.state import Configuration
from sopilot.program.model import (
    Act,
    Always,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Source,
)
from sopilot.program.verifier import require_valid
from sopilot.trace.events import (
    REUSE,
    Amend,
    Call,
    Complete,
    DomainCall,
    DomainResult,
    Event,
    Operation,
    Return,
    Start,
)

ALLOWED = Function(
    "allowed",
    Kind.RULE,
    ("user",),
    (Act("look", "look_up", (("user", Local("user")),)), ReturnStep("judge")),
    predicate="allowed",
)
SMALL = Function("small", Kind.RULE, ("amount",), (ReturnStep("judge"),), predicate="small")
INNER = Function(
    "inner",
    Kind.GROUP,
    ("user",),
    (
        Check("again", "allowed", (("user", Local("user")),), "allowed", unmet="no"),
        ReturnStep("yes", holds=Always(True)),
        ReturnStep("no", holds=Always(False)),
    ),
)


def pay() -> Program:
    root = Function(
        "pay",
        Kind.PROCESS,
        ("user", "amount"),
        (
            Check("first", "allowed", (("user", Local("user")),), "allowed", unmet="refuse"),
            Check("cheap", "small", (("amount", Local("amount")),), "small", unmet="refuse"),
            Check("second", "inner", (("user", Local("user")),), "inner", unmet="refuse"),
            Act("act", "pay", (("user", Local("user")), ("amount", Local("amount"))), goal=True),
            CompleteStep("done"),
            FailStep("refuse"),
        ),
    )
    functions = {one.name: one for one in (root, ALLOWED, SMALL, INNER)}
    program = Program("pay", functions, Source("h", "pay", "0" * 64), "test")
    require_valid(program)
    return program


class Run:
    def __init__(self, *, reuse: bool = True) -> None:
        self.program = pay()
        self.machine = Machine({"pay": self.program})
        self.automation = Automation(
            enter_calls=True, group_returns=True, take_branches=True, reuse_verdicts=reuse
        )
        self.now: Configuration = self.machine.initial()
        self.events: list[Event] = []
        self.calls = 0

    def do(self, operation: Operation) -> Outcome:
        outcome = self.machine.step(self.now, operation, at=1.0)
        settled = self.machine.settle(outcome.configuration, self.automation, at=1.0)
        self.now = settled.configuration
        self.events += [*outcome.events, *settled.events]
        return outcome

    def look(self, user: str, answer: Any = "fine", ok: bool = True) -> None:
        self.calls += 1
        self.do(DomainCall(f"c{self.calls}", "look_up", {"user": user}))
        self.do(DomainResult(f"c{self.calls}", ok, answer))

    @property
    def place(self) -> str:
        frame = self.now.frame
        return frame.place if frame is not None else ""

    def audited(self) -> list[str]:
        assert replay({"pay": self.program}, self.events) == self.now
        report = audit_trace({"pay": self.program}, self.events, ended=False)
        return [finding.code for finding in report.findings]


def begun(*, reuse: bool = True) -> Run:
    run = Run(reuse=reuse)
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    run.look("ann")
    run.do(Return(True))
    return run


def test_a_rule_on_the_same_values_is_not_asked_again_in_another_frame() -> None:
    run = begun()
    run.do(Return(True))  # small
    assert run.place == "pay@act"
    reused = [one for one in run.events if one.kind == REUSE]
    assert [one.payload["function"] for one in reused] == ["allowed"]
    assert "already" in reused[0].payload["ground"]
    assert run.audited() == []


def test_in_the_paper_s_reading_it_is_asked_again() -> None:
    run = begun(reuse=False)
    run.do(Return(True))
    assert run.place == "pay/inner/allowed@look"


@pytest.mark.parametrize("how", ["newer answer", "no evidence", "undecided"])
def test_what_is_not_proven_any_more_is_asked_again(how: str) -> None:
    run = Run()
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    if how != "no evidence":
        run.look("ann")
    if how == "undecided":
        run.do(Return(undecided=True))
        assert run.place == "pay@refuse"
        return
    run.do(Return(True))
    if how == "newer answer":
        run.look("ann", "otherwise")
    run.do(Return(True))
    assert run.place == "pay/inner/allowed@look"


def test_a_failed_look_up_is_not_repeated() -> None:
    run = Run()
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    run.look("ann", "unknown user", ok=False)
    run.do(Return(True))
    run.do(Return(True))
    assert run.place == "pay@act"


def test_an_audit_finds_a_reuse_that_nothing_backs() -> None:
    run = begun()
    run.do(Return(True))
    at = next(index for index, one in enumerate(run.events) if one.kind == REUSE)
    forged = run.events[at]._replace(payload={**run.events[at].payload, "producer": 1})
    report = audit_trace(
        {"pay": run.program}, [*run.events[:at], forged, *run.events[at + 1 :]], ended=False
    )
    assert "inconsistent-trace" in [finding.code for finding in report.findings]


# --- amend ----------------------------------------------------------------------------


def test_a_wrong_start_is_mended_in_place() -> None:
    run = begun()
    assert run.place == "pay/small@judge"
    outcome = run.do(Amend({"amount": 7}))
    assert outcome.accepted
    assert outcome.events[0].payload["changed"] == ["amount"]
    assert outcome.events[0].payload["kept"] == ["allowed"]
    # What did not depend on the amount is proven still; the amount is judged anew.
    assert run.place == "pay/small@judge"
    assert run.now.frame is not None
    assert run.now.frame.locals["amount"] == 7
    run.do(Return(True))
    run.do(DomainCall("p", "pay", {"user": "ann", "amount": 7}))
    run.do(DomainResult("p", True, "paid"))
    assert run.do(Complete()).accepted
    assert run.now.active is None
    assert not run.now.suspended
    assert len(run.now.processes) == 1
    assert run.audited() == []


def test_what_depended_on_the_value_is_unproven_again() -> None:
    run = begun()
    run.do(Return(True))
    assert run.place == "pay@act"
    run.do(Amend({"user": "bob"}))
    assert run.place == "pay/allowed@look"
    assert run.audited() == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"amount": 5}, "nothing-amended"),
        ({"colour": "red"}, "unknown-argument"),
        ({}, "nothing-amended"),
    ],
)
def test_what_cannot_be_amended(arguments: dict[str, Any], code: str) -> None:
    run = begun()
    outcome = run.do(Amend(arguments))
    assert not outcome.accepted
    assert outcome.events[0].payload["code"] == code


def test_nothing_is_amended_once_the_goal_was_carried_out_or_a_call_is_out() -> None:
    run = begun()
    run.do(Return(True))
    run.do(DomainCall("p", "pay", {"user": "ann", "amount": 5}))
    assert run.do(Amend({"amount": 7})).events[0].payload["code"] == "call-pending"
    run.do(DomainResult("p", True, "paid"))
    assert run.do(Amend({"amount": 7})).events[0].payload["code"] == "already-carried-out"
    assert run.audited() == []


def test_a_forged_amendment_is_found() -> None:
    run = begun()
    run.do(Amend({"user": "bob"}))
    at = next(index for index, one in enumerate(run.events) if one.kind == "amend")
    forged = run.events[at]._replace(payload={**run.events[at].payload, "kept": ["allowed"]})
    report = audit_trace({"pay": run.program}, [*run.events[:at], forged], ended=False)
    assert [finding.code for finding in report.findings] == ["inconsistent-trace"]


def test_by_hand_as_well() -> None:
    run = Run(reuse=False)
    run.automation = Automation()
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    run.do(Call("allowed"))
    outcome = run.do(Amend({"user": "bob"}))
    assert outcome.accepted
    assert outcome.events[0].payload["unwound"] == ["pay/allowed"]
    assert run.place == "pay@first"


@pytest.mark.parametrize(
    ("calls", "again"),
    [
        ((), False),
        ((("one", True),), False),
        ((("one", False),), True),
        ((("one", True), ("two", False)), True),
        ((("one", True), ("two", True)), True),
        ((("other", False),), False),
    ],
)
def test_half_of_a_recipe_is_asked_again_and_what_failed_is_not(
    calls: tuple[tuple[str, bool], ...], again: bool
) -> None:
    rule = Function("r", Kind.RULE, (), (Act("a", "one"), Act("b", "two"), ReturnStep("judge")))
    steps = (
        Check("first", "r", (), "first", met="second", unmet="second"),
        Check("second", "r", (), "second", met="yes", unmet="yes"),
        CompleteStep("yes"),
    )
    run = AnyRun({"go": program("go", Function("go", Kind.PROCESS, (), steps), rule)})
    run.ok(Start("go"))
    run.ok(Call())
    cited = tuple(f"#{run.tool(action, ok=ok)}" for action, ok in calls)
    run.ok(Return(True, cited))
    assert run.place == "go@second"
    assert (run.machine.reusable(run.configuration, 0.0) is not None) is again
