"""A verdict that is taken over at a later check: where it stands, and where it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from vm_programs import program
from vm_runs import Run

from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.machine.automation import Automation
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Literal,
    Local,
    Program,
    ReturnStep,
    Unknown,
)
from sopilot.trace.events import Call, Event, Fail, Return, Start, UserSaid

USER = (("user", Local("user")),)
END = ReturnStep("end")
READ = Act("read", "read", USER)
RULES = {
    "one": Function("one", Kind.RULE, ("user",), (READ, END), predicate="one"),
    "two": Function(
        "two", Kind.RULE, ("user",), (READ, Act("look", "look", USER), END), predicate="two"
    ),
    "either": Function(
        "either", Kind.RULE, ("user",), (READ, END), predicate="either",
        fallbacks=((Act("look", "look", USER),),),
    ),
    "told": Function(
        "told", Kind.RULE, ("user",),
        (Act("read", "read", (*USER, ("code", Unknown("code")))), END), predicate="told",
    ),
    "asked": Function(
        "asked", Kind.RULE, ("user",), (Ask("ask", ("code",)), READ, END), predicate="asked"
    ),
    "bare": Function("bare", Kind.RULE, ("user",), (END,), predicate="bare"),
    "heard": Function(
        "heard", Kind.RULE, ("user",), (Ask("ask", ("code",)), END), predicate="heard"
    ),
}  # fmt: skip


def twice(rule: Function, *, user: Any = USER[0][1]) -> Program:
    """The same rule at two checks, about the same user or another."""
    go = Function(
        "go",
        Kind.PROCESS,
        ("user",),
        (
            Check("first", rule.name, USER, "a", met="second", unmet="second"),
            Check("second", rule.name, (("user", user),), "b", unmet="no"),
            Act("act", "pay", USER, goal=True),
            CompleteStep("done"),
            FailStep("no"),
        ),
    )
    return program("go", go, rule)


def judged(rule: str, holds: bool | None, *calls: tuple[str, Any, bool], **more: Any) -> Run:
    """After the first check, judged on these calls."""
    run = Run({"go": twice(RULES[rule], **more)})
    run.ok(Start("go", {"user": "ann"}))
    run.ok(Call())
    for action, value, ok in calls:
        if action == "say":
            run.ok(UserSaid(value))
        else:
            run.tool(action, value, ok, user="ann", **({"code": 7} if rule == "told" else {}))
    run.ok(Return(holds, undecided=holds is None))
    return run


def taken_over(run: Run, **changed: Any) -> list[Finding]:
    """What is found about the verdict being taken over at the second check."""
    given = next(one for one in reversed(run.events) if one.kind == "return")
    payload = {
        "label": "second", "slot": "b", "function": given.payload["function"],
        "producer": given.seq, "evidence": given.payload["bound"]["evidence"],
        "holds": given.payload["bound"]["holds"],
    }  # fmt: skip
    seq = len(run.events)
    reuse = Event(seq, float(seq), "machine", "reuse", "p1", "go@second", {**payload, **changed})
    programs = {goal: layout.program for goal, layout in run.machine.programs.layouts.items()}
    found = audit_trace(programs, [*run.events, reuse], ended=False).findings
    return [one for one in found if one.seq == seq]


READS, LOOKS = ("read", 5, True), ("look", 6, True)
FAILS = ("read", "no", False)


def nothing(run: Run) -> None:
    pass


def reads_again(run: Run) -> None:
    run.tool("read", 9, user="ann")


def reads_of_another(run: Run) -> None:
    run.tool("read", 9, user="bob")


def pays(run: Run) -> None:
    run.tool("pay", True, user="bob")


def fails_to_pay(run: Run) -> None:
    run.tool("pay", "no", False, user="bob")


@pytest.mark.parametrize(
    ("rule", "holds", "calls", "then", "stands"),
    [
        ("one", True, [READS], nothing, True),
        ("one", False, [READS], nothing, True),
        ("one", None, [READS], nothing, False),
        ("one", True, [], nothing, False),
        ("one", True, [READS], reads_again, False),
        ("one", True, [READS], reads_of_another, True),
        ("one", True, [READS], pays, False),
        ("one", True, [READS], fails_to_pay, True),
        ("one", False, [FAILS], nothing, True),
        ("one", True, [LOOKS], nothing, False),
        ("two", True, [READS, LOOKS], nothing, True),
        ("two", True, [READS], nothing, False),
        ("two", False, [FAILS, LOOKS], nothing, True),
        ("either", True, [LOOKS], nothing, True),
        ("either", True, [READS], pays, False),
        ("told", True, [READS], nothing, True),
        ("told", False, [FAILS], nothing, False),
        ("asked", True, [("say", "7", True), READS], nothing, True),
        ("asked", False, [("say", "7", True), FAILS], nothing, False),
        ("bare", True, [], nothing, True),
        ("bare", False, [], pays, True),
        ("bare", None, [], nothing, False),
        ("heard", True, [("say", "7", True)], nothing, False),
    ],
)
def test_where_a_verdict_stands(
    rule: str, holds: bool | None, calls: list[Any], then: Callable[[Run], None], stands: bool
) -> None:
    run = judged(rule, holds, *calls)
    then(run)
    assert [one.code for one in taken_over(run)] == ([] if stands else ["inconsistent-trace"])


@pytest.mark.parametrize(
    ("user", "changed"),
    [
        (Literal("bob"), {}),
        (Local("other"), {}),
        (Local("user"), {"producer": 1}),
        (Local("user"), {"holds": 1}),
        (Local("user"), {"evidence": []}),
        (Local("user"), {"slot": "a"}),
        (Local("user"), {"function": "two"}),
        (Local("user"), {"label": "first"}),
    ],
)
def test_what_is_taken_over_is_what_was_given(user: Any, changed: Any) -> None:
    run = judged("one", True, READS, user=user)
    found = taken_over(run, **changed)
    assert [(one.code, one.severity) for one in found] == [("inconsistent-trace", Severity.ERROR)]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_cause_that_is_met_twice_is_named_once(wanted: bool) -> None:
    small = Function("small", Kind.RULE, ("n",), (ReturnStep("end"),), predicate="small")
    other = replace(small, name="other", predicate="other")
    terms = (("n", Local("n")),)
    steps = (
        Check("a", "other", terms, "o", False, unmet="b"),
        Check("b", "small", terms, "x", unmet="c"),
        Check("c", "small", terms, "y", wanted, met="no", unmet="no"),
        CompleteStep("done"),
        FailStep("no"),
    )
    made = program("go", Function("go", Kind.PROCESS, ("n",), steps), small, other)
    run = Run({"go": made})
    run.ok(Start("go", {"n": 1}))
    run.ok(Call())
    run.ok(Return(False))
    run.ok(Call())
    run.ok(Return(False))
    run.settle(Automation(reuse_verdicts=True))
    assert run.place == "go@no"
    assert run.events[-1].kind == "reuse"
    run.ok(Fail("no"))
    report = audit_trace({"go": made}, run.events)
    assert report.clean
    assert report.score_card.reused == 1
    (refusal,) = report.refusals
    assert [one["predicate"] for one in refusal.causes] == ["small"]
