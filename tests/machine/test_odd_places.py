"""Places that few runs come by: limits to the step, programs that changed, calls by halves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import LOGGED_IN, PROGRAMS, TRANSFER, program
from vm_runs import ARGUMENTS, Run, decided, logged_in

from sopilot.handbook.requirements import Path
from sopilot.machine.automation import Automation
from sopilot.machine.evidence import (
    asked_otherwise,
    changes,
    is_current,
    may_disturb,
    next_wanted,
    stale_since,
    wanted_here,
)
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine
from sopilot.machine.proof.leaves import Prover
from sopilot.machine.recipes import Absent
from sopilot.machine.terms import fits_act
from sopilot.program.model import (
    Act,
    ActionFacts,
    Ask,
    Check,
    CompleteStep,
    Do,
    FailStep,
    Function,
    Kind,
    Literal,
    Local,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.trace.events import (
    Call,
    Complete,
    DomainCall,
    DomainResult,
    Fail,
    Return,
    SelectBranch,
    Start,
)

# --- amended calls --------------------------------------------------------------------


def test_what_people_chose_is_the_process_s_at_the_act_alone() -> None:
    run = decided()
    run.ok(DomainCall("c1", "transfer", {**ARGUMENTS, "to": "mallory"}, amended=True))
    assert run.configuration.processes["p1"].known["to"] == "eve"  # not at the act
    run = decided()
    run.ok(SelectBranch())
    run.ok(DomainCall("c1", "transfer", {"to": "ann", "amount": 7, "odd": 1}, amended=True))
    process = run.configuration.processes["p1"]
    assert {**process.known} == {**ARGUMENTS, "password": "hunter2", "to": "ann", "amount": 7}
    assert process.frames[0].locals["to"] == "ann"
    run = decided()
    run.ok(SelectBranch())
    run.ok(DomainCall("c1", "transfer", {"to": "ann"}))
    assert run.configuration.processes["p1"].known["to"] == "eve"


# --- limits ---------------------------------------------------------------------------


def test_the_last_step_that_a_process_may_take() -> None:
    for limit in (3, 4):
        run = Run(PROGRAMS, Limits(steps=limit))
        run.ok(Start("transfer", ARGUMENTS))  # 1
        run.ok(Call())  # 2
        run.ok(Return(True))  # 3
        assert (run.do(Call()).accepted, limit) in ((False, 3), (True, 4))
        assert run.configuration.processes["p1"].steps == limit
        refused = run.do(Call()).answer
        assert refused["code"] == "steps-exceeded"
        assert refused["problem"] == f"this process took {limit} steps; only `fail` is left"
        run.ok(Fail("enough"))


@pytest.mark.parametrize(("steps", "reused"), [(9, False), (10, True)])
def test_what_is_due_takes_a_step_as_well(steps: int, reused: bool) -> None:
    """The gate is checked again at `login_again`, and is open."""
    run = Run(PROGRAMS, Limits(steps=steps))
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Return(False))
    outcome = run.ok(Return())
    assert [one.kind for one in outcome.events] == ["return", *["reuse"] * reused]
    assert run.place == ("transfer@decide" if reused else "transfer@login_again")
    assert (run.machine.due(run.configuration, 0.0) is not None) is False
    assert run.machine.reusable(run.configuration, 0.0) is None


@pytest.mark.parametrize(
    ("goal", "place"), [("transfer", "transfer@login"), ("errand", "errand@pick"), ("x", None)]
)
def test_where_a_goal_begins(goal: str, place: str | None) -> None:
    machine = Machine(PROGRAMS)
    for _ in range(2):
        begun = machine.beginning(goal)
        assert (begun.frame.place if begun is not None else None) == place


def test_what_a_start_would_lead_to_is_not_recorded() -> None:
    machine = Machine(PROGRAMS)
    found = machine.suppose(machine.initial(), Start("transfer", {"to": "eve"}), at=0.0)
    assert found is not None
    assert found.frame is not None
    assert found.frame.locals == {"to": "eve"}
    assert machine.suppose(found, Start("transfer", {"to": "eve"}), at=0.0) is None


# --- a program that changed under a run -----------------------------------------------


def test_a_return_to_a_place_that_checks_nothing_any_more() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call())
    root = TRANSFER.functions["transfer"]
    steps = (Do("login", "Look."), *root.steps[1:])
    changed = replace(
        TRANSFER, functions={**TRANSFER.functions, "transfer": replace(root, steps=steps)}
    )
    outcome = Machine({**PROGRAMS, "transfer": changed}).step(
        run.configuration, Return(True), at=0.0
    )
    assert outcome.answer["code"] == "wrong-step"
    assert "does not fit at transfer/logged_in@ask" in outcome.answer["problem"]


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
    run.settle(Automation(reuse_verdicts=True))
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
    here = run.machine.position(run.configuration)
    assert here is not None
    early = wanted_here(here, EACH)
    assert isinstance(early, Absent)
    assert early.why == "`orders` was not answered"
    assert next_wanted(here, EACH) is None
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


def test_an_answer_without_the_list_leaves_the_next_call_open() -> None:
    run = in_linked()
    run.tool("list_orders", {"none": 1}, user="ann")
    shape = run.machine.fits(run.configuration)[0]
    assert shape["action"] == "read_order"
    assert (shape["arguments"], shape["missing"]) == ({}, ["id", "as"])


# --- fresh or not ---------------------------------------------------------------------

FACTS = {
    "read": ActionFacts({"user": {}}, changes=(), reads=("money",)),
    "look": ActionFacts({"user": {}}, changes=()),
    "pay": ActionFacts({"user": {}}, changes=("money",)),
    "paint": ActionFacts({"user": {}}, changes=("walls",)),
    "churn": ActionFacts({"user": {}}, changes=("money",), reads=("money",)),
}


@pytest.mark.parametrize(
    ("action", "verifier", "disturbs"),
    [
        ("pay", "read", True), ("paint", "read", False), ("read", "read", False),
        ("paint", "look", True), ("look", "look", False), ("unknown", "read", True),
        ("paint", "unknown", True), ("look", "unknown", False), ("churn", "churn", True),
    ],
)  # fmt: skip
def test_what_disturbs_what(action: str, verifier: str, disturbs: bool) -> None:
    programs = replace(Run(PROGRAMS).machine.programs, actions=FACTS, disturbs={})
    for _ in range(2):
        assert may_disturb(programs, action, verifier) is disturbs
    known = action in FACTS and verifier in FACTS
    assert ((action, verifier) in programs.disturbs) is known
    assert changes(programs, "pay") == ("money",)
    assert changes(programs, "unknown") is None
    bare = replace(programs, actions={})
    assert changes(bare, "transfer") is None
    assert changes(bare, "pay") == ()


def read_once() -> tuple[Run, Any]:
    run = Run(PROGRAMS)
    run.tool("read", 1, user="ann")
    ((newest,),) = (one.values() for one in run.configuration.answers.values())
    return run, newest


def test_the_same_call_since_with_more_than_it_takes() -> None:
    run, newest = read_once()
    programs = replace(run.machine.programs, actions=FACTS)

    def again() -> int:
        return asked_otherwise(programs, run.configuration, "read", {"user": "ann"}, newest)

    assert again() == 0
    run.tool("read", 2, user="bob", odd=1)
    run.tool("look", 2, user="ann", odd=1)
    assert again() == 0
    run.ok(DomainCall("p", "read", {"user": "ann", "odd": 2}))
    waiting = run.configuration.pending["p"].seq
    assert again() == waiting
    run.ok(DomainResult("p", True))
    assert again() == waiting + 1
    assert asked_otherwise(
        replace(programs, actions={}), run.configuration, "read", {"user": "ann"}, newest
    ) == waiting + 1  # fmt: skip


def test_whether_an_answer_is_stale() -> None:
    run, newest = read_once()
    programs = replace(run.machine.programs, actions=FACTS, disturbs={})

    def stale() -> str:
        return stale_since(programs, run.configuration, "read", newest)

    run.tool("paint", user="ann")
    run.tool("pay", ok=False, user="ann")
    assert stale() == ""
    run.ok(DomainCall("p", "pay", {"user": "bob"}))
    seq = run.configuration.pending["p"].seq
    assert stale() == f"`pay` (#{seq}) may be changing it, its outcome is unknown"
    run.ok(DomainResult("p", False, None, True))
    assert stale() == "`pay` broke off, and may change it at any time"


def test_whether_a_result_is_current() -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.tool("read_balance", 1, username="bob")
    (result,) = [
        one for one in run.configuration.processes["p1"].results if one.action == "read_balance"
    ]
    programs = run.machine.programs

    def current() -> bool:
        return is_current(programs, run.configuration, result)

    assert current() is True
    run.ok(DomainCall("w", "read_balance", {"username": "eve"}))
    assert current() is True
    run.ok(DomainCall("v", "read_balance", {"username": "bob"}))
    assert current() is False
    run.ok(DomainResult("v", True, 2))
    assert current() is False


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"username": "bob", "password": "any"}, True), ({"username": "bob"}, True),
        ({"username": "eve", "password": "x"}, False), ({"password": "x"}, False), ({}, False),
    ],
)  # fmt: skip
def test_a_call_that_a_step_asks_for(arguments: Any, fits: bool) -> None:
    run = logged_in()
    here = run.machine.position(run.configuration)
    assert here is not None
    gate, act = here.program.functions["logged_in"], LOGGED_IN.steps[1]
    assert isinstance(act, Act)
    frame = here.frame
    assert fits_act(act, "login", arguments, gate, frame, here.process.known) is fits
    assert fits_act(act, "logout", arguments, gate, frame, here.process.known) is False
    nothing = Act("x", "login", (("username", Local("gone")), ("code", Literal(None))))
    assert fits_act(nothing, "login", {}, gate, frame, {}) is True
    assert fits_act(nothing, "login", {"code": 1}, gate, frame, {}) is False


# --- what a proof needs of a call -----------------------------------------------------


def prover(run: Run, **facts: ActionFacts) -> Prover:
    programs = replace(run.machine.programs, actions=facts, disturbs={})
    process = run.configuration.processes["p1"]
    return Prover(programs, run.configuration, process, {}, lambda *_: True)


def test_a_verifier_that_cannot_be_asked_proves_nothing() -> None:
    run = logged_in()
    values = {"username": "bob", "amount": 5}
    inputs = {"username": {"type": "string"}, "branch": {}}
    needs = prover(run, read_balance=ActionFacts(inputs, required=("branch",), changes=()))
    found = needs.leaf("funds_cover", values)
    assert found.why == "`read_balance` cannot be asked: it needs `branch`"
    typed = prover(run, read_balance=ActionFacts({"username": {"type": "number"}}, changes=()))
    assert typed.leaf("funds_cover", values).why == (
        "`read_balance` cannot be asked: `username` must be of type number"
    )
    churn = ActionFacts(inputs, changes=("a",), reads=("a",))
    run.tool("read_balance", {"balance": 9}, username="bob")
    assert prover(run, read_balance=churn).leaf("funds_cover", values).why == (
        "`read_balance` changes what it reads, so it proves nothing"
    )
    plain = prover(run, read_balance=ActionFacts(inputs, changes=()))
    assert plain.leaf("funds_cover", values).holds is True
    layout = plain.program.functions["overdraft"]
    assert plain.covers(layout, {}, frozenset()) is False
    assert plain.covers(layout, {"username": "bob"}, frozenset()) is False
    run.tool("read_limit", 10, username="bob")
    seqs = frozenset(one.seq for one in run.configuration.processes["p1"].results)
    facts = dict.fromkeys(("read_balance", "read_limit"), ActionFacts(inputs, changes=()))
    whole = prover(run, **facts)
    assert whole.covers(layout, {"username": "bob"}, seqs) is True
    assert whole.covers(layout, {"username": "bob"}, frozenset()) is False
    nothing = whole.program.functions["any_of_funds"]
    assert whole.covers(nothing, {"username": "bob", "amount": 5}, frozenset()) is True
