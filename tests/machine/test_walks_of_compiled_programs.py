"""Compiled programs on the machine: it accepts exactly where the handbook says so."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from vm_runs import Run

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Binding, Constant, meaning
from sopilot.machine.automation import Automation
from sopilot.machine.replay import replay
from sopilot.machine.state import Status
from sopilot.trace.events import Call, Complete, Fail, Return, SelectBranch, Start, UserSaid
from sopilot.values.json import JSON

HANDBOOK = load_handbook(
    """
handbook: small-desk
actions:
  login: {input: {username: string, password: string}}
  look_a: {input: {username: string}, requires: logged_in(username)}
  look_b: {input: {username: string, amount: number}}
  look_c: {input: {amount: number}}
  look_d: {}
  pay: {input: {username: string, amount: number}}
predicates:
  logged_in(username):
    says: The user {username} has logged in.
    established_by: login(username, password)
  a(username): {says: "A of {username}.", verify: {any: [look_a(username), look_d()]}}
  b(username, amount):
    says: B of {username}.
    verify: {all: [look_b(username, amount), look_d()]}
  c(amount): {says: "C of {amount}.", verify: look_c(amount)}
  d(amount): {says: "D of {amount}.", verify: arguments}
procedures:
  pay:
    requires:
      all:
        - in_order: [logged_in(username), a(username)]
        - any:
            - {all: [b(username, amount), {not: c(amount)}]}
            - {first: [d(amount), {not: a(username)}, c(7)]}
            - {not: d(9)}
        - first: [{any: [c(amount), d(amount)]}, b(username, amount)]
""",
    "small-desk.yaml",
)
PROGRAM = compile_procedure(HANDBOOK, "pay").program
ARGUMENTS: dict[str, JSON] = {"username": "bob", "amount": 5}
LEAVES = [
    ("logged_in", (("username", "bob"),)),
    ("a", (("username", "bob"),)),
    ("b", (("username", "bob"), ("amount", 5))),
    *((name, (("amount", amount),)) for name in "cd" for amount in (5, 7, 9)),
]
Key = tuple[str, tuple[tuple[str, JSON], ...]]


def execute(truths: dict[Key, bool], automation: Automation) -> Run:
    """Follows what fits, and judges every rule by the assignment."""
    run = Run({"pay": PROGRAM})
    run.ok(Start("pay", ARGUMENTS))
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


def expected(truths: dict[Key, bool]) -> bool:
    def verdicts(predicate: str, binding: Binding) -> bool:
        values = tuple(
            (name, term.value if isinstance(term, Constant) else ARGUMENTS[term.name])
            for name, term in binding
        )
        return truths[predicate, values]

    return meaning(HANDBOOK.procedures["pay"].requires, verdicts)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.booleans(), min_size=len(LEAVES), max_size=len(LEAVES)), st.booleans())
def test_the_goal_is_reached_exactly_when_the_requirement_holds(
    values: list[bool], automatic: bool
) -> None:
    truths: dict[Key, bool] = dict(zip(LEAVES, values, strict=True))
    automation = Automation(take_branches=automatic, group_returns=automatic, enter_calls=automatic)
    run = execute(truths, automation)
    process = run.configuration.processes["p1"]
    holds = expected(truths)
    assert (process.status is Status.COMPLETED) == holds
    assert (run.configuration.goal_seq >= 0) == holds
    assert run.events[-1].payload["accepting"] is True
    assert replay({"pay": PROGRAM}, run.events) == run.configuration
    rejected = [event for event in run.events if event.kind == "rejected"]
    assert rejected == []


def test_gates_are_entered_once() -> None:
    run = execute(dict.fromkeys(LEAVES, True), Automation())
    calls = [event.payload["function"] for event in run.events if event.kind == "call"]
    assert sum("logged_in" in name for name in calls) == 1
