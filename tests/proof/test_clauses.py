"""The parts of a proof by themselves: three values, calls of a gate, the act's own arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import program
from vm_runs import Run, logged_in

from sopilot.machine.proof.leaves import (
    GateCalls,
    Grade,
    LeafVerdict,
    either,
    grade_of_return,
    may_concern,
    names_the_same,
)
from sopilot.machine.proof.licence import (
    Licence,
    license_call,
)
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import Answered
from sopilot.program.model import (
    Act,
    ActionFacts,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Local,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.trace.events import Call, Return, SelectBranch, Start
from sopilot.values.json import Judge

A, B = Holds("a"), Holds("b", wanted=False)


# --- the calls of a gate --------------------------------------------------------------


def answered(asked: int, touched: int) -> Answered:
    return Answered({}, asked, touched, True, None, touched, asked, touched)


@pytest.mark.parametrize(
    ("exact", "touching", "pending", "latest", "touched", "overlapping"),
    [
        ([], [], False, None, -1, False),
        ([], [], True, None, -1, True),
        ([], [(1, 2)], False, None, 2, False),
        ([(1, 2)], [], False, 1, 2, False),
        ([(1, 2), (3, 4)], [], False, 3, 4, False),
        ([(1, 9), (3, 4)], [], False, 3, 9, True),
        ([(3, 4)], [(1, 2)], False, 3, 4, False),
        ([(3, 4)], [(1, 5)], False, 3, 5, True),
        ([(3, 4)], [(1, 3)], False, 3, 4, False),
    ],
)
def test_the_calls_of_a_gate(
    exact: list[tuple[int, int]],
    touching: list[tuple[int, int]],
    pending: bool,
    latest: int | None,
    touched: int,
    overlapping: bool,
) -> None:
    own = tuple(answered(*one) for one in exact)
    calls = GateCalls(own, (*own, *(answered(*one) for one in touching)), pending)
    assert (calls.latest.asked if calls.latest is not None else None) == latest
    assert calls.touched == touched
    assert calls.overlapping is overlapping
    other = GateCalls((answered(1, 2),), (), False)
    assert either(None, calls) is calls
    both = either(calls, other)
    assert both.exact == (*own, *other.exact)
    assert both.touching == calls.touching
    assert both.pending is either(other, calls).pending is pending


LOGIN = Act("login", "login", (("user", Local("user")), ("password", Unknown("password"))))
WANTED = WantedCall(LOGIN, {"user": "ann"}, ("password",))


@pytest.mark.parametrize(
    ("arguments", "concerns"),
    [
        ({"user": "ann", "password": "x"}, True),
        ({"user": "bob", "password": "x"}, False),
        ({"user": "ann"}, True),
        ({"password": "x"}, True),
        ({"user": "ann", "password": "x", "more": 1}, True),
        ({"user": 5, "password": "x"}, True),
        ({"user": True, "password": "x"}, True),
        ({"user": "ann\u200b", "password": "x"}, True),
        ({}, True),
    ],
)
def test_whom_a_call_may_concern(arguments: Any, concerns: bool) -> None:
    assert may_concern(WANTED, arguments) is concerns


@pytest.mark.parametrize(
    ("wanted", "given", "concerns", "same"),
    [
        (5, 5.0, True, True), (5, 6, False, False), (5, 5.5, False, False), (5, "5", True, False),
        (1, True, True, False), (True, False, False, False), ([1], [2], False, False),
        ([1], {}, True, False), (None, None, True, True),
    ],
)  # fmt: skip
def test_a_value_that_a_tool_may_read_as_another(
    wanted: Any, given: Any, concerns: bool, same: bool
) -> None:
    call = WantedCall(LOGIN, {"user": wanted})
    assert may_concern(call, {"user": given}) is concerns
    assert names_the_same(call, {"user": given}) is same


# --- the act itself -------------------------------------------------------------------


def at_the_act(run: Run) -> Any:
    run.ok(SelectBranch())
    here = run.machine.position(run.configuration)
    assert here is not None
    return here


FACTS = ActionFacts({"to": {"type": "string"}, "amount": {"type": "number"}}, required=("to",))


def leaf(holds: bool | None, grade: Grade, *calls: WantedCall) -> LeafVerdict:
    return LeafVerdict("f", "it", holds, grade, (1, 2), "", calls)


@pytest.mark.parametrize(
    ("grades", "weakest"),
    [
        ([], Grade.PROVEN),
        ([(True, Grade.PROVEN), (False, Grade.STATED)], Grade.STATED),
        ([(True, Grade.STATED), (True, Grade.ATTESTED)], Grade.ATTESTED),
        ([(None, Grade.ATTESTED), (True, Grade.PROVEN)], Grade.PROVEN),
    ],
)
def test_a_licence_is_as_good_as_its_weakest_leaf(grades: Any, weakest: Grade) -> None:
    licence = Licence("", tuple(leaf(*one) for one in grades))
    assert licence.grade is weakest
    told = [
        {"predicate": "it", "holds": holds, "grade": str(grade), "evidence": [1, 2]}
        for holds, grade in grades
    ]
    assert licence.as_json() == {"grade": str(weakest), "leaves": told}


def test_the_calls_that_a_licence_rests_on_each_once() -> None:
    other = WantedCall(LOGIN, {"user": "bob"})
    leaves = (leaf(True, Grade.PROVEN, WANTED, other), leaf(True, Grade.PROVEN, WANTED))
    assert Licence("", leaves).calls == (WANTED, other)


# --- grades ---------------------------------------------------------------------------


def holds_it(value: bool | None) -> Judge:
    return lambda expression, variables: value


@pytest.mark.parametrize(
    ("operation", "judged", "grade"),
    [
        (Return(True), True, Grade.PROVEN),
        (Return(True), False, Grade.CLAIMED),
        (Return(True), None, Grade.CLAIMED),
        (Return(False), False, Grade.PROVEN),
        (Return(undecided=True), True, None),
    ],
)
def test_the_grade_of_a_verdict_that_a_machine_can_tell(
    operation: Return, judged: bool | None, grade: Grade | None
) -> None:
    run = logged_in()
    run.ok(Call())
    here = run.machine.position(run.configuration)
    assert here is not None
    # A group is judged by nobody.
    assert grade_of_return(run.machine.programs, here, Return(True), (), holds_it(True)) is None
    run.ok(Call())
    seq = run.tool("read_balance", {"balance": 120}, username="bob")
    here = run.machine.position(run.configuration)
    assert here is not None
    given = grade_of_return(run.machine.programs, here, operation, (seq,), holds_it(judged))
    assert given is grade


@pytest.mark.parametrize(
    ("calls", "cited", "grade"),
    [
        (("read_balance", "read_limit"), slice(None), Grade.ATTESTED),
        (("read_balance", "read_limit"), slice(1), Grade.CLAIMED),
        (("read_balance",), slice(None), Grade.CLAIMED),
        ((), slice(None), Grade.CLAIMED),
    ],
)
def test_the_grade_of_a_verdict_by_a_model(
    calls: tuple[str, ...], cited: slice, grade: Grade
) -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.ok(Return(False))
    run.ok(Call())
    seqs = [run.tool(name, 10, username="bob") for name in calls]
    here = run.machine.position(run.configuration)
    assert here is not None
    found = grade_of_return(run.machine.programs, here, Return(True), seqs[cited], holds_it(None))
    assert found is grade


# --- depth ----------------------------------------------------------------------------


def nested(depth: int) -> Run:
    """Groups in groups, and a rule that its values decide at the bottom."""
    rule = Function("g0", Kind.RULE, (), (ReturnStep("end"),), predicate="it", verdict="true")
    groups = [
        Function(
            f"g{level}",
            Kind.GROUP,
            (),
            (Check("c", f"g{level - 1}", (), "s"), ReturnStep("end", Holds("s"))),
        )
        for level in range(1, depth + 1)
    ]
    steps: tuple[Step, ...] = (
        Check("c", f"g{depth}", (), "s", unmet="no"),
        Act("act", "pay", goal=True),
        CompleteStep("done"),
        FailStep("no"),
    )
    root = Function("go", Kind.PROCESS, (), steps)
    made = replace(program("go", root, rule, *groups), guarded=(Guarded("pay"),))
    run = Run({"go": made})
    run.ok(Start("go"))
    return run


@pytest.mark.parametrize(("depth", "proven"), [(1, True), (64, True), (65, False)])
def test_groups_are_followed_64_deep(depth: int, proven: bool) -> None:
    run = nested(depth)
    here = run.machine.position(run.configuration)
    assert here is not None
    here = replace(here, frame=here.frame.at("act"), step=here.layout.steps["act"])
    found = license_call(run.machine.programs, here, {}, holds_it(True))
    assert (found.missing == "") is proven
    if proven:
        denied = license_call(run.machine.programs, here, {}, holds_it(False))
        assert denied.missing == "`it` must be true and is false"
    else:
        assert found.missing == "the program does not lead to `pay` by what was checked"
