"""What the machine refuses, and the audit of the branches that it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import ERRAND, PROGRAMS, TRANSFER, program
from vm_runs import ARGUMENTS, Run, decided, in_rule, logged_in

from sopilot.audit.audit import audit_trace
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine
from sopilot.machine.moves import names_of
from sopilot.machine.replay import replay
from sopilot.program.model import CompleteStep, Emit, Every, Function, Holds, Kind, ReturnStep
from sopilot.trace.events import (
    REUSE,
    Amend,
    Call,
    EmitArtifact,
    Fail,
    JudgeCheck,
    Return,
    SelectBranch,
    Start,
)


def contradictions(run: Run) -> list[str]:
    return [one.code for one in audit_trace(PROGRAMS, run.events, ended=False).findings]


@pytest.mark.parametrize(
    "word",
    ["then", "true", "yes", "met", "YES", "otherwise", "else", "false", "no", "unmet", "No",
     "act", "refuse", None, "perhaps", "是", "否"],
)  # fmt: skip
@pytest.mark.parametrize("funds", [True, False])
def test_the_words_for_a_branch(word: str | None, funds: bool) -> None:
    """One way is right by what was found; the word for the other is refused."""
    run = decided(funds=funds)
    before = contradictions(run)
    yes = word in ("then", "true", "yes", "met", "YES", "act", "是")
    assert run.place == "transfer@decide"
    if word == "perhaps":
        assert run.no(SelectBranch(word)) == "unknown-option"
    elif word is None or yes == funds:
        run.ok(SelectBranch(word))
        assert run.place == ("transfer@act" if funds else "transfer@refuse")
    else:
        assert run.no(SelectBranch(word)) == "branch-contradicts"
    wrong = word not in (None, "perhaps") and yes != funds
    assert contradictions(run) == [*before, *["wrong-branch"] * wrong]


def fitting(run: Run) -> list[tuple[object, ...]]:
    """The operations that fit, each with the name that it takes."""
    return [
        tuple(shape[key] for key in ("operation", "option", "action", "name") if key in shape)
        for shape in run.machine.fits(run.configuration)
    ]


@pytest.mark.parametrize(("option", "place"), [("short", "write"), ("long", "look")])
def test_an_option_that_is_chosen(option: str, place: str) -> None:
    run = Run(PROGRAMS)
    run.ok(Start("errand", {"what": "x"}))
    assert run.no(SelectBranch("medium")) == "unknown-option"
    assert run.no(SelectBranch()) == "unknown-option"
    assert fitting(run) == [("select_branch", "short"), ("select_branch", "long"), ("fail",)]
    run.ok(SelectBranch(option))
    assert run.place == f"errand@{place}"
    looking = [("domain_call", "search"), ("select_branch", "next"), ("fail",)]
    assert fitting(run) == (looking if option == "long" else [("emit_artifact", "memo"), ("fail",)])
    if option == "long":
        assert run.no(SelectBranch("back")) == "unknown-option"
        run.tool("search")  # what it uses, done
        assert run.place == "errand@more"
        run.ok(SelectBranch("next"))
    assert run.no(SelectBranch("next")) == "wrong-step"
    assert run.no(EmitArtifact("letter", {"title": "a"})) == "wrong-artifact"
    for content in ("no title", '{"title": 5}', {}):
        assert run.no(EmitArtifact("memo", content)) == "bad-artifact"
    run.ok(EmitArtifact("memo", '{"title": "a"}'))
    process = run.configuration.process
    assert process is not None
    assert process.artifacts["memo"] == {"title": "a"}
    assert contradictions(run) == []


def test_a_text_that_is_no_json_is_no_null() -> None:
    steps = (Emit("write", "memo", schema={"type": ["object", "null"]}), CompleteStep("finish"))
    run = Run({"go": program("go", Function("go", Kind.PROCESS, (), steps))})
    run.ok(Start("go"))
    refused = run.do(EmitArtifact("memo", "{")).refusal
    assert refused["reason"] == (
        "`memo` does not fit its schema: the content must be of type object or null"
    )
    run.ok(EmitArtifact("memo", "null"))


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"option": "medium"}, True),
        ({"target": "finish"}, True),
        ({"label": "look"}, True),
        ({}, False),
    ],
)
def test_a_branch_that_nobody_could_take_is_found(changed: dict[str, Any], found: bool) -> None:
    run = Run(PROGRAMS)
    run.ok(Start("errand", {"what": "x"}))
    run.ok(SelectBranch("long"))
    last = run.events[-1]
    run.events[-1] = last._replace(payload={**last.payload, **changed})
    assert bool(contradictions(run)) is found


def test_so_many_processes_and_so_many_that_wait() -> None:
    run = Run(PROGRAMS, Limits(depth=2, processes=4))
    for number in range(3):
        run.ok(Start("errand", {"what": number}))
    assert run.no(Start("errand", {"what": 3})) == "depth-exceeded"
    run = Run(PROGRAMS, Limits(depth=9, processes=2))
    for number in range(2):
        run.ok(Start("errand", {"what": number}))
    assert run.no(Start("errand", {"what": 2})) == "processes-exceeded"
    run.ok(Start("errand", {"what": 0}))  # one that waits is taken up again


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


def test_a_start_that_would_be_refused_leads_nowhere() -> None:
    machine, start = Machine(PROGRAMS), Start("transfer", {"to": "eve"})
    led = machine.suppose(machine.initial(), start, at=0.0)
    assert led is not None
    assert machine.suppose(led, start, at=0.0) is None


def test_the_limits_of_a_session_are_not_the_audits() -> None:
    run = Run(PROGRAMS, Limits(depth=100))
    for number in range(70):
        run.ok(Start("errand", {"what": number}))
    assert contradictions(run) == []


def test_a_stack_has_an_end() -> None:
    run = Run(PROGRAMS, Limits(depth=2))
    run.ok(Start("transfer", {"username": "bob", "amount": 1, "to": "eve"}))
    run.ok(Call())
    deep = Run(PROGRAMS, Limits(depth=1))
    deep.ok(Start("transfer", {"username": "bob", "amount": 1, "to": "eve"}))
    assert deep.no(Call()) == "depth-exceeded"


def test_what_a_limit_forbids_the_machine_does_not_do_by_itself_either() -> None:
    run = Run(PROGRAMS, Limits(depth=1))
    run.ok(Start("transfer", ARGUMENTS))
    assert run.automate(Automation(enter_calls=True)).events == ()
    assert run.place == "transfer@login"


@pytest.mark.parametrize(("amount", "judged"), [({}, False), ({"amount": 100}, True)])
def test_no_verdict_is_computed_without_its_values(amount: dict[str, int], judged: bool) -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"username": "bob", **amount}))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Call())
    run.tool("read_balance", {"balance": 120}, username="bob")
    run.automate(Automation(machine_verdicts=True), lambda *_: True)
    assert run.place.endswith("any_of_funds@check_2" if judged else "funds_cover@done")


def test_by_default_the_machine_does_nothing_by_itself() -> None:
    """Though its next step may follow without the executor nearly everywhere here."""
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {}))
    assert run.automate(Automation(enter_calls=True)).events == ()  # a value is missing
    done, refused = decided(), decided(funds=False)
    for run in (done, refused):
        run.ok(SelectBranch())
    done.tool("transfer", **ARGUMENTS)
    assert (done.place, refused.place) == ("transfer@finish", "transfer@refuse")
    for run in (done, refused):
        for count in range(1, len(run.events) + 1):
            run.configuration = replay(PROGRAMS, run.events[:count])
            steps = run.automate(Automation(), lambda *_: True).events
            assert {event.kind for event in steps} <= {REUSE}  # of a gate that is open


def test_a_process_that_is_set_aside_and_taken_up_again_takes_steps() -> None:
    run = Run(PROGRAMS)
    steps = []
    for what in (1, 2, 1, 2):
        run.ok(Start("errand", {"what": what}))
        steps.append(run.configuration.processes["p1"].steps)
    assert steps == [1, 2, 3, 4]


@pytest.mark.parametrize("by_itself", [True, False])
def test_a_group_returns_by_itself_where_that_is_allowed(by_itself: bool) -> None:
    run = in_rule()
    run.ok(Return(True))
    run.ok(Call())
    run.ok(Return(True))
    assert run.place == "transfer/any_of_funds@end"
    run.automate(Automation(group_returns=by_itself, machine_verdicts=True), lambda *_: True)
    assert run.place == ("transfer@decide" if by_itself else "transfer/any_of_funds@end")


@pytest.mark.parametrize(
    ("kind", "forged"),
    [
        ("return", {"process": "p2"}),
        ("return", {"frame": "transfer@login"}),
        ("reuse", {"actor": "model"}),
    ],
)
def test_an_event_of_another_actor_or_place_is_found(kind: str, forged: dict[str, str]) -> None:
    run = decided()
    assert "inconsistent-trace" not in contradictions(run)
    place = next(index for index, event in enumerate(run.events) if event.kind == kind)
    run.events[place] = run.events[place]._replace(**forged)
    assert "inconsistent-trace" in contradictions(run)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (Start("nothing"), "unknown-goal"),
        (Start("transfer", ARGUMENTS, "act"), ""),
        (Start("transfer", ARGUMENTS, "refuse"), "unknown-act"),
        (Start("transfer", ARGUMENTS, "nowhere"), "unknown-act"),
        (JudgeCheck("overdraft", ARGUMENTS, True), ""),
        (JudgeCheck("funds_cover", ARGUMENTS, True), "not-judged"),
        (JudgeCheck("any_of_funds", ARGUMENTS, True), "not-judged"),
        (JudgeCheck("nothing", ARGUMENTS, True), "not-judged"),
    ],
)
def test_a_start_at_an_act_and_a_judgement_beside_the_cursor(
    operation: Start | JudgeCheck, code: str
) -> None:
    run = Run(PROGRAMS) if isinstance(operation, Start) else logged_in()
    before = run.place
    if code:
        assert run.no(operation) == code
        assert run.place == before
    else:
        run.ok(operation)
        assert run.place == ("transfer@act" if isinstance(operation, Start) else before)


def test_values_of_another_type_are_not_taken() -> None:
    typed = {"transfer": replace(TRANSFER, types={"amount": {"type": "number"}}), "errand": ERRAND}
    run = Run(typed)
    given: dict[str, Any] = {"username": "bob", "amount": "much", "to": "eve"}
    assert run.no(Start("transfer", given)) == "wrong-type"
    run.ok(Start("transfer", {"username": "bob"}))
    assert run.no(Call(arguments={"amount": "much"})) == "wrong-type"
    run.ok(Call(arguments={"amount": 5}))
    assert run.no(Amend({"amount": "much"})) == "wrong-type"
    assert run.no(Amend({"amount": 5})) == "nothing-amended"
    assert run.no(Amend({"amuont": 5})) == "unknown-argument"
    run.ok(Amend({"amount": 6}))


@pytest.mark.parametrize(("name", "kept"), [("to", ["logged"]), ("username", [])])
def test_other_values_leave_what_they_cannot_touch(name: str, kept: list[str]) -> None:
    run = logged_in()
    outcome = run.ok(Amend({name: "cid"}))
    assert outcome.events[0].payload["kept"] == kept
    assert contradictions(run) == []


@pytest.mark.parametrize(
    ("holds", "bound"),
    [
        ((False, True), ("funds_cover",)),
        ((True, True), ()),
        ((False, False), ("funds_cover", "overdraft")),
    ],
)
def test_the_checks_that_a_group_is_blamed_on(
    holds: tuple[bool, bool], bound: tuple[str, ...]
) -> None:
    both = replace(
        TRANSFER.functions["any_of_funds"],
        steps=(
            *TRANSFER.functions["any_of_funds"].steps[:2],
            ReturnStep("end", Every((Holds("funds"), Holds("over")))),
        ),
    )
    functions = {**TRANSFER.functions, "any_of_funds": both}
    run = Run({"transfer": replace(TRANSFER, functions=functions)})
    run.ok(Start("transfer", {"username": "bob", "amount": 1}))
    run.ok(Call())
    run.ok(Return(True))
    run.ok(Call())
    for one in holds:
        run.ok(Call())
        run.ok(Return(one))
    run.ok(Return())
    frame = run.configuration.frame
    assert frame is not None
    assert names_of(frame.slots["money"].unmet) == bound
