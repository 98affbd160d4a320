"""The parts of a proof by themselves: three values, calls of a gate, the act's own arguments."""

from __future__ import annotations

from typing import Any

import pytest
from vm_runs import logged_in

from sopilot.machine.proof.leaves import (
    ProofLevel,
    grade_of_return,
    may_concern,
    names_the_same,
)
from sopilot.machine.recipes import WantedCall
from sopilot.program.model import Act, Local, Unknown
from sopilot.trace.events import Call, Return
from sopilot.values.json import Judge

# --- the calls of a gate --------------------------------------------------------------


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


# --- grades ---------------------------------------------------------------------------


def holds_it(value: bool | None) -> Judge:
    return lambda expression, variables: value


@pytest.mark.parametrize(
    ("operation", "judged", "grade"),
    [
        (Return(True), True, ProofLevel.PROVEN),
        (Return(True), False, ProofLevel.CLAIMED),
        (Return(True), None, ProofLevel.CLAIMED),
        (Return(False), False, ProofLevel.PROVEN),
        (Return(undecided=True), True, None),
    ],
)
def test_the_grade_of_a_verdict_that_a_machine_can_tell(
    operation: Return, judged: bool | None, grade: ProofLevel | None
) -> None:
    run = logged_in()
    run.ok(Call())
    here = run.machine.position(run.configuration)
    assert here is not None
    # A group is judged by nobody.
    assert grade_of_return(here, Return(True), (), holds_it(True)) is None
    run.ok(Call())
    seq = run.tool("read_balance", {"balance": 120}, username="bob")
    here = run.machine.position(run.configuration)
    assert here is not None
    given = grade_of_return(here, operation, (seq,), holds_it(judged))
    assert given is grade


@pytest.mark.parametrize(
    ("calls", "cited", "grade"),
    [
        (("read_balance", "read_limit"), slice(None), ProofLevel.ATTESTED),
        (("read_balance", "read_limit"), slice(1), ProofLevel.CLAIMED),
        (("read_balance",), slice(None), ProofLevel.CLAIMED),
        ((), slice(None), ProofLevel.CLAIMED),
    ],
)
def test_the_grade_of_a_verdict_by_a_model(
    calls: tuple[str, ...], cited: slice, grade: ProofLevel
) -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.ok(Return(False))
    run.ok(Call())
    seqs = [run.tool(name, 10, username="bob") for name in calls]
    here = run.machine.position(run.configuration)
    assert here is not None
    found = grade_of_return(here, Return(True), seqs[cited], holds_it(None))
    assert found is grade
