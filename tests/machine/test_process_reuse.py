"""Nothing is asked twice in a process, and a wrong start is mended in place."""

from __future__ import annotations

from typing import Any

import pytest
from vm_programs import program
from vm_runs import Run

from sopilot.audit.audit import audit_trace
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Outcome
from sopilot.machine.replay import replay
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Holds,
    Kind,
    Local,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.trace.events import (
    REUSE,
    Amend,
    Call,
    Complete,
    DomainCall,
    DomainResult,
    Operation,
    Return,
    Start,
)

PAY = program_from_yaml(
    """
sopilot_program: 1
entry: pay
functions:
  pay:
    kind: process
    parameters: [user, amount]
    steps:
      - {step: first, call: allowed, with: {user: $user}, bind: allowed, unmet: refuse}
      - {step: cheap, call: small, with: {amount: $amount}, bind: small, unmet: refuse}
      - {step: second, call: inner, with: {user: $user}, bind: inner, unmet: refuse}
      - {step: act, act: pay, with: {user: $user, amount: $amount}, goal: true}
      - {step: done, complete: null}
      - {step: refuse, fail: null}
  allowed:
    kind: rule
    parameters: [user]
    steps: [{step: look, act: look_up, with: {user: $user}}, {step: judge, return: null}]
  small: {kind: rule, parameters: [amount], steps: [{step: judge, return: null}]}
  inner:
    kind: group
    parameters: [user]
    steps:
      - {step: again, call: allowed, with: {user: $user}, bind: allowed, unmet: no_more}
      - {step: fine, return: true}
      - {step: no_more, return: false}
"""
)


class Reusing(Run):
    """Settles after every operation."""

    def __init__(self, *, reuse: bool = True) -> None:
        super().__init__({"pay": PAY})
        self.automation = Automation(
            enter_calls=True, group_returns=True, take_branches=True, reuse_verdicts=reuse
        )

    def do(self, operation: Operation) -> Outcome:
        outcome = super().do(operation)
        self.automate(self.automation)
        return outcome

    def audited(self) -> list[str]:
        assert replay({"pay": PAY}, self.events) == self.configuration
        report = audit_trace({"pay": PAY}, self.events, ended=False)
        return [finding.code for finding in report.findings]


def begun(*, reuse: bool = True) -> Reusing:
    run = Reusing(reuse=reuse)
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    run.tool("look_up", "fine", user="ann")
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


@pytest.mark.parametrize(("limit", "reuses"), [(7, 0), (8, 1)])
def test_a_reuse_is_a_step_like_any_other(limit: int, reuses: int) -> None:
    run = Run({"pay": PAY}, Limits(steps=limit))
    run.ok(Start("pay", {"user": "ann", "amount": 5}))
    run.ok(Call())
    run.ok(Return(True, (f"#{run.tool('look_up', 'fine', user='ann')}",)))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    assert run.place == "pay/inner@again"
    assert run.automate(Automation()).events == ()
    run.automate(Automation(reuse_verdicts=True))
    assert run.kinds().count(REUSE) == reuses


def test_a_loop_of_results_that_are_bound_goes_round_once() -> None:
    fine = Function("fine", Kind.RULE, (), (ReturnStep("judge"),))
    steps = (
        Check("first", "fine", (), "first", met="second"),
        Check("second", "fine", (), "second", met="first"),
        FailStep("no"),
    )
    run = Run({"go": program("go", Function("go", Kind.PROCESS, (), steps), fine)})
    run.ok(Start("go"))
    for _ in range(2):
        run.ok(Call())
        run.ok(Return(True))
    assert run.place == "go@first"
    assert run.kinds().count(REUSE) == 2
    assert replay({"go": run.machine.programs.layouts["go"].program}, run.events)


@pytest.mark.parametrize(("name", "stored"), [("code", []), ("amount", ["knows"])])
def test_a_result_stands_unless_something_below_it_learned_the_value(
    name: str, stored: list[str]
) -> None:
    asks = (Act("look", "look_up", (("code", Unknown("code")),)), ReturnStep("judge"))
    inner = (Check("ask", "told", (), "told"), ReturnStep("end", Holds("told")))
    steps = (
        Check("first", "knows", (), "knows", unmet="no"),
        Act("act", "pay", (("amount", Local("amount")),), goal=True),
        FailStep("no"),
    )
    run = Run(
        {
            "go": program(
                "go",
                Function("go", Kind.PROCESS, ("amount",), steps),
                Function("knows", Kind.GROUP, (), inner),
                Function("told", Kind.RULE, (), asks),
            )
        }
    )
    run.ok(Start("go", {"amount": 5}))
    run.ok(Call())
    run.ok(Call())
    run.tool("look_up", code="x")
    run.ok(Return(True))
    run.ok(Return())
    assert run.place == "go@act"
    assert run.ok(Amend({name: 6})).events[0].payload["kept"] == stored


def test_in_the_paper_s_reading_it_is_asked_again() -> None:
    run = begun(reuse=False)
    run.do(Return(True))
    assert run.place == "pay/inner/allowed@look"


@pytest.mark.parametrize("how", ["newer answer", "no evidence", "undecided"])
def test_what_is_not_proven_any_more_is_asked_again(how: str) -> None:
    run = Reusing()
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    if how != "no evidence":
        run.tool("look_up", "fine", user="ann")
    if how == "undecided":
        run.do(Return(undecided=True))
        assert run.place == "pay@refuse"
        return
    run.do(Return(True))
    if how == "newer answer":
        run.tool("look_up", "otherwise", user="ann")
    run.do(Return(True))
    assert run.place == "pay/inner/allowed@look"


def test_a_failed_look_up_is_not_repeated() -> None:
    run = Reusing()
    run.do(Start("pay", {"user": "ann", "amount": 5}))
    run.tool("look_up", "unknown user", ok=False, user="ann")
    run.do(Return(True))
    run.do(Return(True))
    assert run.place == "pay@act"


def test_an_audit_finds_a_reuse_that_nothing_backs() -> None:
    run = begun()
    run.do(Return(True))
    at = next(index for index, one in enumerate(run.events) if one.kind == REUSE)
    forged = run.events[at]._replace(payload={**run.events[at].payload, "producer": 1})
    report = audit_trace(
        {"pay": PAY}, [*run.events[:at], forged, *run.events[at + 1 :]], ended=False
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
    assert run.configuration.frame is not None
    assert run.configuration.frame.locals["amount"] == 7
    run.do(Return(True))
    run.do(DomainCall("p", "pay", {"user": "ann", "amount": 7}))
    run.do(DomainResult("p", True, "paid"))
    assert run.do(Complete()).accepted
    assert run.configuration.active is None
    assert not run.configuration.suspended
    assert len(run.configuration.processes) == 1
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
    report = audit_trace({"pay": PAY}, [*run.events[:at], forged], ended=False)
    assert [finding.code for finding in report.findings] == ["inconsistent-trace"]


def test_by_hand_as_well() -> None:
    run = Reusing(reuse=False)
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
    run = Run({"go": program("go", Function("go", Kind.PROCESS, (), steps), rule)})
    run.ok(Start("go"))
    run.ok(Call())
    cited = tuple(f"#{run.tool(action, ok=ok)}" for action, ok in calls)
    run.ok(Return(True, cited))
    assert run.place == "go@second"
    assert (run.machine.reusable(run.configuration, 0.0) is not None) is again


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
        assert run.events[-1].payload["ground"] == "already judged for the same values (#2)"
        run.ok(Complete())
