"""What is missing on every way to a goal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vm_programs import program
from vm_runs import Run

from sopilot.handbook.requirements import Path
from sopilot.machine.leaves import LeafVerdict, Prover
from sopilot.machine.state import ProofLevel
from sopilot.program.model import (
    Act,
    Always,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Local,
    Option,
    ReturnStep,
    Step,
)
from sopilot.proof.licence import Licence, license_call
from sopilot.trace.events import Call, Return, Start
from sopilot.values.json import JSON

# --- ways to the goal -----------------------------------------------------------------


def rule(name: str) -> Function:
    return Function(name, Kind.RULE, (), (ReturnStep("end"),), predicate=name, verdict=name)


def started(root: Function, *others: Function, **values: JSON) -> Run:
    """A run of a program in which `pay` is guarded."""
    run = Run({"go": replace(program("go", root, *others), guarded=(Guarded("pay"),))})
    run.ok(Start("go", values))
    return run


def process(*steps: Step, parameters: tuple[str, ...] = ()) -> Function:
    return Function("go", Kind.PROCESS, parameters, steps)


def licence_in(run: Run, **truths: bool | None) -> Licence:
    """The licence for `pay` where these rules are so; a rule that isn't named is undecided."""
    here = run.machine.position(run.configuration)
    assert here is not None
    here = replace(here, frame=here.frame.at("act"), step=here.layout.steps["act"])
    return license_call(here, {}, lambda expression, _: truths.get(expression))


def leaf_in(run: Run, function: str, judged: bool | None = None, **values: JSON) -> LeafVerdict:
    process, judge = run.configuration.processes["p1"], lambda *_: judged
    prover = Prover(run.machine.programs, run.configuration, process, {}, judge)
    return prover.leaf(function, values)


def licensed(steps: tuple[Step, ...], **truths: bool | None) -> str:
    """What is missing for `pay` in a process with these steps and the rules a, b and c."""
    return licence_in(started(process(*steps), *map(rule, "abc")), **truths).missing


def check(name: str, met: str | None = None, unmet: str = "no", wanted: bool = True) -> Check:
    return Check(f"check_{name}", name, (), name, wanted, met, unmet)


ACT, DONE, NO = Act("act", "pay", goal=True), CompleteStep("done"), FailStep("no")
OPEN = ", but is undecided: the answers don't decide its verdict"
NOWHERE = "with the checks so far, the procedure doesn't reach `pay`"


WAYS: list[tuple[tuple[Step, ...], dict[str, bool], str]] = [
    ((check("a"), ACT, DONE, NO), {"a": True}, ""),
    ((check("a"), ACT, DONE, NO), {"a": False}, "`a` must be true, but is false"),
    ((check("a"), ACT, DONE, NO), {}, f"`a` must be true{OPEN}"),
    # Undecided is neither: it may lead to a refusal.
    ((check("a", met="no", unmet="act"), ACT, DONE, NO), {}, f"`a` must be true{OPEN}"),
    ((check("a", met="no", unmet="act"), ACT, DONE, NO), {"a": False}, ""),
    ((check("a", met="act", unmet="act"), ACT, DONE, NO), {}, ""),
    ((check("a", wanted=False), ACT, DONE, NO), {"a": False}, ""),
    ((check("a", wanted=False), ACT, DONE, NO), {"a": True},
     "`a` must be false, but is true"),
    ((check("a"), check("b"), ACT, DONE, NO), {"a": True}, f"`b` must be true{OPEN}"),
    ((check("a"), check("b"), ACT, DONE, NO), {},
     f"`a` must be true{OPEN}; `b` must be true{OPEN}"),
    # Whatever a is, b decides.
    ((check("a", unmet="check_b"), check("b"), ACT, DONE, NO), {"b": True}, ""),
    # An alternative that is not so leads to another that is open.
    ((check("a", met="act", unmet="check_b"), check("b"), ACT, DONE, NO), {"a": False},
     f"`a` must be true, but is false; `b` must be true{OPEN}"),
    ((check("a", met="act", unmet="check_b"), check("b"), ACT, DONE, NO), {"b": True}, ""),
    ((check("a", met="no"), ACT, DONE, NO), {"a": True}, NOWHERE),
    # A branch over results that are all there, or not.
    ((check("a", met="fork", unmet="fork"), Branch("fork", Holds("a"), "act", "no"), ACT, DONE,
      NO), {"a": True}, ""),
    ((check("a", met="fork", unmet="fork"), Branch("fork", Holds("a"), "act", "no"), ACT, DONE,
      NO), {}, f"`a` must be true{OPEN}"),
    ((check("a", met="fork", unmet="fork"),
      Branch("fork", Holds("a", wanted=False), "check_b", "no"), check("b"), ACT, DONE, NO),
     {"a": True}, f"`b` must be true{OPEN}"),
    ((check("a", met="fork", unmet="fork"), Branch("fork", Holds("a"), "act", "act"), ACT, DONE,
      NO), {}, ""),
    # Who chooses may choose what leads there.
    ((Choose("c", "?", (Option("x", "no"), Option("y", "check_a"))), check("a"), ACT, DONE, NO),
     {"a": True}, ""),
    ((Choose("c", "?", (Option("x", "no"), Option("y", "check_a"))), check("a"), ACT, DONE, NO),
     {}, f"`a` must be true{OPEN}"),
    ((Ask("ask", ("x",)), ACT, DONE), {}, ""),
    ((Act("first", "reserve"), ACT, DONE), {}, "`go@first` was not done"),
    ((Do("first", "Look."), check("a"), ACT, DONE, NO), {"a": False},
     "`go@first` was not done; `a` must be true, but is false"),
    ((Emit("first", "memo"), ACT, DONE), {}, "`go@first` was not done"),
    ((NO, ACT, DONE), {}, NOWHERE),
    # What is missing is missing where the branch over what was proven leads.
    ((check("a", met="act", unmet="fork"), Branch("fork", Holds("a"), "check_b", "check_c"),
      check("b", met="act"), check("c", met="act"), ACT, DONE, NO), {"a": False},
     f"`a` must be true, but is false; `c` must be true{OPEN}"),
    ((check("a", met="act", unmet="fork", wanted=False),
      Branch("fork", Holds("a"), "check_b", "check_c"),
      check("b", met="act"), check("c", met="act"), ACT, DONE, NO), {"a": True},
     f"`a` must be false, but is true; `b` must be true{OPEN}"),
    ((Ask("x", ("y",), next="x"), ACT, DONE), {}, NOWHERE),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "truths", "missing"), WAYS)
def test_what_is_missing_on_the_way(
    steps: tuple[Step, ...], truths: dict[str, bool], missing: str
) -> None:
    assert licensed(steps, **truths) == missing


# --- groups in groups -----------------------------------------------------------------


def chained(groups: int, *, holds: bool) -> str:
    """What is missing where so many groups stand in one another around one rule."""
    names = [*(f"g{number}" for number in range(groups)), "a"]
    inside = [
        Function(
            name,
            Kind.GROUP,
            (),
            (Check("in", names[place + 1], (), "in", met="end", unmet="end"),
             ReturnStep("end", Holds("in"))),
        )
        for place, name in enumerate(names[:-1])
    ]  # fmt: skip
    root = process(check(names[0]), ACT, DONE, NO)
    return missing_for(root, *inside, rule("a"), a=holds)


def missing_for(root: Function, *others: Function, **truths: bool) -> str:
    return licence_in(started(root, *others), **truths).missing


@pytest.mark.parametrize("groups", [1, 2, 63, 64])
def test_as_many_groups_as_a_stack_has_frames(groups: int) -> None:
    assert chained(groups, holds=True) == ""
    assert chained(groups, holds=False) == "`a` must be true, but is false"


def test_a_group_below_the_deepest_frame_proves_nothing() -> None:
    assert chained(65, holds=True) == NOWHERE
    assert chained(65, holds=False) == NOWHERE


def test_a_group_that_asks_itself_proves_nothing() -> None:
    steps = (Check("in", "g", (), "in", met="end", unmet="end"), ReturnStep("end", Holds("in")))
    root = process(check("g"), ACT, DONE, NO)
    assert missing_for(root, Function("g", Kind.GROUP, (), steps)) == NOWHERE


def test_a_group_that_asks_nothing_is_what_it_says() -> None:
    root = process(check("g"), ACT, DONE, NO)
    for value, missing in ((True, ""), (False, NOWHERE)):
        steps = (ReturnStep("end", Always(value)),)
        assert missing_for(root, Function("g", Kind.GROUP, (), steps)) == missing


def test_a_rule_that_ends_otherwise_than_by_its_judgement_proves_nothing() -> None:
    """By hand: it stops where another check is not met, whatever its own verdict would be."""
    steps = (check("b", met="judge", unmet="stop"), ReturnStep("judge"), FailStep("stop"))
    stopping = replace(rule("a"), steps=steps)
    root = process(check("a"), ACT, DONE, NO)
    assert missing_for(root, stopping, rule("b"), a=True, b=True) == ""
    assert missing_for(root, stopping, rule("b"), a=True, b=False) == (
        "`b` must be true, but is false"
    )


# --- what was judged, and by whose answers --------------------------------------------


def test_another_call_of_the_goal_is_not_this_one() -> None:
    other = Act("other", "pay", goal=True)
    steps = (check("a", met="other", unmet="act"), other, DONE, ACT, CompleteStep("end"), NO)
    assert licensed(steps, a=False) == ""
    assert licensed(steps, a=True) != ""


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (None, "`a` must be true, but is undecided: it wasn't judged for these values"),
        (Return(undecided=True), "`a` must be true, but is undecided: it was judged undecided"),
        (Return(False), "`a` must be true, but is false"),
        (Return(True), ""),
    ],
)
def test_what_a_model_has_judged(given: Return | None, missing: str) -> None:
    trusted = replace(rule("a"), verdict=None, judged_by_model=True)
    run = started(process(check("a"), ACT, DONE, NO), trusted)
    if given is not None:
        run.ok(Call())
        run.ok(given)
    found = licence_in(run)
    assert found.missing == missing
    assert missing or found.grade is ProofLevel.ATTESTED


@pytest.mark.parametrize("answered", [False, True])
def test_a_gate_whose_call_looks_into_an_answer_is_never_told(answered: bool) -> None:
    """Its calls have no values of their own, so nobody can say which ones opened it."""
    into = Act("then", "open", (("id", Path("find", ("id",))),))
    gate = Function("g", Kind.GATE, (), (Act("find", "find"), into, ReturnStep("end")))
    run = started(process(check("g"), ACT, DONE, NO), gate)
    if answered:
        run.tool("find", {"id": 1})
        run.tool("open", id=1)
    found = leaf_in(run, "g")
    if answered:
        assert found.holds is None
        assert found.why == "it is unknown whether `open` or the call that closes it came last"
    else:
        assert found.holds is False


@pytest.mark.parametrize(
    ("judged_on", "holds"), [(["u"], True), (["v"], None), (["u", "v"], True), (["other"], None)]
)
def test_a_verdict_on_what_somebody_elses_answer_says_is_none_on_ones_own(
    judged_on: list[str], holds: bool | None
) -> None:
    """Though both answers say the same."""
    reading = Act("read", "read", (("id", Local("user")),))
    steps = (reading, ReturnStep("judge"))
    trusted = Function("a", Kind.RULE, ("user",), steps, predicate="a", judged_by_model=True)
    asking = Check("check_a", "a", (("user", Local("user")),), "a", unmet="no")
    run = started(process(asking, ACT, DONE, NO, parameters=("user",)), trusted, user="u")
    run.ok(Call())
    answers = {who: run.tool("read", 1, id=who) for who in ("v", "u")}
    answers["other"] = run.tool("look", 1, id="u")
    run.ok(Return(True, tuple(f"#{answers[who]}" for who in judged_on)))
    again = run.tool("read", 1, id="u")
    found = leaf_in(run, "a", user="u")
    assert found.holds is holds
    assert found.evidence == ((again,) if holds else ())


@pytest.mark.parametrize("verdict", [None, "opened"])
def test_another_way_to_verify_opens_no_gate(verdict: str | None) -> None:
    acts = (Act("first", "open"), ReturnStep("end"))
    other = ((Act("other", "knock"),),)
    gate = Function("g", Kind.GATE, (), acts, fallbacks=other, verdict=verdict)
    run = started(process(check("g"), ACT, DONE, NO), gate)
    for action, holds in (("knock", False), ("open", True)):
        run.tool(action, True)
        assert leaf_in(run, "g", judged=True).holds is holds
