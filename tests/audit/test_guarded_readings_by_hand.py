"""Guarded calls, gates and recipes as they come up once in a thousand traces: case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from readings_at_hand import CODE, TRANSFERS, at, audit_state
from vm_programs import program

from sopilot.audit.call_reading import moment_of
from sopilot.audit.guarded_calls import _asked_of_people
from sopilot.audit.leaf_reading import _ways, asked_calls, opens_gate
from sopilot.audit.state import SessionCall
from sopilot.handbook.requirements import Path
from sopilot.machine.layout import lay_out
from sopilot.machine.recipes import MOST_ELEMENTS
from sopilot.messages.errors import UserMistake
from sopilot.program.model import (
    Act,
    ActionFacts,
    CompleteStep,
    Function,
    Guarded,
    Kind,
    Literal,
    Local,
    ReturnStep,
    Unknown,
)

# --- guarded calls ----------------------------------------------------------------------

PAY = Act("act", "pay", (("from", Local("user")), ("to", Local("user")), ("n", Literal(1))),
          goal=True)  # fmt: skip
PAYING = replace(
    program("go", Function("go", Kind.PROCESS, ("user",), (PAY, CompleteStep("done")))),
    guarded=(Guarded("pay", when="n > 0", roles=("boss",), needed=1),),
    actions={"pay": ActionFacts({"from": {"type": "string"}}, ("from",), None)},
)
PAYS, PAYMENTS = lay_out(PAYING), {"go": PAYING}


def test_whether_people_are_asked_at_all() -> None:
    def judge(expression: str, variables: Any) -> bool | None:
        if variables["n"] == 3:
            raise UserMistake("no such thing")
        return {0: False, 1: True}.get(variables["n"])

    run, process = audit_state(PAYMENTS, judge), at("act", {"user": "a"}, PAYS)
    guarded = PAYS.guarded["pay"]

    def asked(number: int, **changed: Any) -> bool:
        call = SessionCall(9, "pay", {"n": number}, "p1", 0)
        return _asked_of_people(run, call, changed.get("process", process),
                                changed.get("guarded", guarded))  # fmt: skip

    assert [asked(number) for number in (0, 1, 2, 3)] == [False, True, True, True]
    assert asked(0, process=None) is True
    assert asked(0, guarded=replace(guarded, when=None)) is True
    run.judge = None
    assert asked(0) is True


# --- gates ------------------------------------------------------------------------------


def gate(name: str, *parameters: str, principal: bool = True) -> Function:
    terms = tuple((one, Local(one)) for one in parameters)
    act = Act("open", f"open_{name}", (*terms, ("password", Unknown("password"))))
    steps = (act, ReturnStep("end"))
    return Function(name, Kind.GATE, parameters, steps, predicate=name, principal=principal)


def test_the_other_ways_to_be_known() -> None:
    gates = [gate("a", "user"), gate("b", "user"), gate("c", "user", "bank"),
             gate("d", "user", principal=False)]  # fmt: skip
    go = Function("go", Kind.PROCESS, ("user",), (CompleteStep("done"),))
    made = program("go", go, *gates)
    code = lay_out(made)
    moment = moment_of(audit_state({"go": made}), at("done", {}, code), {})
    act = code.functions["a"].recipe_acts[0]
    for name, others in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        own = code.functions[name]
        ways = [one.action for _, one in _ways(moment, own, own.recipe_acts[0])]
        assert ways == [f"open_{one}" for one in (name, *others)]
    right = {"user": "ann", "password": "x"}
    for arguments, opens in (
        (right, True), ({**right, "user": "bob"}, False), ({"user": "ann"}, False),
        ({**right, "more": 1}, False),
    ):  # fmt: skip
        call = SessionCall(1, "open_a", arguments)
        assert opens_gate(act, {"user": "ann"}, call) is opens
    assert opens_gate(act, {"user": "ann"}, SessionCall(1, "open_b", right)) is False


# --- calls that a recipe asks for -------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        ([{"id": 1}, {"id": 2}], [{"id": 1}, {"id": 2}]),
        ([], []),
        ([{"id": 1}] * MOST_ELEMENTS, [{"id": 1}] * MOST_ELEMENTS),
        ([{"id": 1}] * (MOST_ELEMENTS + 1), "`found.ids` has more than 1000 elements"),
        ([{"id": None}], "there is nothing at `one.id` in what was answered"),
        ([{}], "there is nothing at `one.id` in what was answered"),
        ({"id": 1}, "`found.ids` is no list in what was answered"),
        (None, "`found.ids` is no list in what was answered"),
    ],
)
def test_one_call_for_each(listed: Any, asked: Any) -> None:
    act = Act("each", "read", (("id", Path("one", ("id",))),), each=Path("found", ("ids",)),
              element="one")  # fmt: skip
    moment = moment_of(audit_state(TRANSFERS), at("act"), {})
    found = asked_calls(moment, CODE.functions["overdraft"], act, {}, {"found": {"ids": listed}})
    assert (found if isinstance(found, list) else found.why) == asked
