"""A scenario passes exactly when the procedure does what it expects."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loan_desk import BRIEFING, FACTS, GOOD_TOOLS, HANDBOOK, outcome, run, scenario

from sopilot.agent.result import Ending
from sopilot.handbook.consistency import obligations
from sopilot.handbook.requirements import Binding, leaves, meaning
from sopilot.protocols import ToolResult
from sopilot.tasks.coverage import Coverage, coverage_of
from sopilot.tasks.scenarios import Expectation, ScriptedAnswer, ScriptedRuling

LEND = f"goal: lend\n{FACTS}\nverdicts: {{sensible: true}}\napprovals: [supervisor]\n"


def test_what_holds_is_executed() -> None:
    result = outcome(LEND + "expect: executed\ncalls: [login, read_file, lend]\nno_calls: [close]")
    assert result.reasons == ()
    assert result.session.ending is Ending.EXECUTED
    assert [one.action for one in result.calls][-1] == "lend"


def test_without_an_approval_the_run_waits() -> None:
    body = LEND.replace("approvals: [supervisor]\n", "")
    assert outcome(body + "expect: waiting").passed
    (reason,) = outcome(body + "expect: executed").reasons
    assert reason.startswith("expected `executed`, but the run waits for people (")


@pytest.mark.parametrize(
    ("tools", "cause"),
    [
        ("read_flags: {flagged: true}", "flagged"),
        ("read_file: {solvent: false, guarantor: false}", "solvent"),
        ("read_file: {solvent: false, guarantor: false}", "guarantor"),
        ("login: failed", "logged_in"),
    ],
)
def test_a_refusal_names_its_cause(tools: str, cause: str) -> None:
    body = f"{LEND}tools: {{{tools}}}\n"
    assert outcome(body + f"expect: {{refused: {cause}}}\nno_calls: [lend]").reasons == ()
    assert outcome(body + "expect: refused").passed
    assert (
        outcome(body + "expect: {refused: small}")
        .reasons[0]
        .startswith("expected a refusal because of `small`, but ")
    )
    assert (
        outcome(body + "expect: executed")
        .reasons[0]
        .startswith("expected `executed`, but the request was refused because of ")
    )


def test_an_option_that_another_one_makes_up_for_is_no_cause() -> None:
    tools = "tools:\n  read_file: {solvent: false, guarantor: true}\n  read_flags: {flagged: true}"
    result = outcome(f"{LEND}{tools}\nexpect: {{refused: solvent}}")
    assert result.causes == ("flagged",)
    assert result.reasons == ("expected a refusal because of `solvent`, but `flagged` failed",)


def test_an_execution_that_should_have_been_refused_fails() -> None:
    result = outcome(LEND + "expect: {refused: flagged}\nno_calls: [lend]")
    assert result.reasons == (
        "expected `refused`, but the request was executed",
        "`lend` must not be called, but it was",
    )


def test_calls_must_come_in_their_order_and_with_their_arguments() -> None:
    assert outcome(LEND + "expect: executed\ncalls: [login, {lend: {amount: 50}}]").passed
    (wrong_order,) = outcome(LEND + "expect: executed\ncalls: [lend, login]").reasons
    assert wrong_order.startswith("expected a call of `login` in this order; the calls were ")
    (wrong_value,) = outcome(LEND + "expect: executed\ncalls: [{lend: {amount: 51}}]").reasons
    assert wrong_value.startswith("expected a call of `lend` with these arguments")


def test_what_nobody_judges_is_told() -> None:
    body = LEND.replace("verdicts: {sensible: true}\n", "")
    assert outcome(body + "expect: executed").reasons == (
        "`sensible` has no verdict in the handbook, "
        "and the scenario's `verdicts` say nothing about it",
    )
    other = LEND.replace("{sensible: true}", "{sensible: [{when: {purpose: a car}, holds: true}]}")
    assert "for these arguments" in outcome(other + "expect: executed").reasons[0]


def test_a_verdict_without_a_simulated_result_is_told() -> None:
    (reason,) = outcome(LEND + "expect: executed", tools="").reasons
    assert reason.startswith("the verdict of `solvent` cannot be judged: ")
    assert reason.endswith("give `read_file` a result under `tools`")


def test_answers_come_one_after_another_and_by_arguments() -> None:
    body = f"goal: close\n{FACTS}\nexpect: %s\ntools:\n  read_flags:\n"
    by_arguments = "    - {when: {user: Bob}, result: {flagged: true}}\n    - {flagged: false}\n"
    assert outcome(body % "executed" + by_arguments).passed
    repeated = "    - {flagged: true}\n    - {when: {user: Ada}, result: {flagged: false}}\n"
    assert [one.ok for one in outcome(body % "executed" + repeated).calls] == [True] * 3
    in_turn = "    - {flagged: false}\n    - {flagged: true}\n"
    assert outcome(body % "executed" + in_turn).passed
    the_last_again = "    - {flagged: false}\n"
    assert outcome(body % "{refused: flagged}" + the_last_again).passed
    nothing_fits = "    - {when: {user: Eve}, result: {flagged: true}}\n"
    (reason,) = outcome(body % "executed" + nothing_fits).reasons
    assert reason == "no recipe of `flagged` is answered: `read_flags` failed"


def test_values_are_given_out_as_copies() -> None:
    one = scenario(LEND + "expect: executed")
    before = json.dumps(one.tools["read_file"][0].result.value)
    run(one)
    assert json.dumps(one.tools["read_file"][0].result.value) == before


TRUTHS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("logged_in", "solvent", "guarantor", "flagged", "small")}
    | {"sensible": st.booleans()}
)


@settings(deadline=None, max_examples=40)
@given(TRUTHS)
def test_the_ending_is_the_meaning_of_the_tree(truth: dict[str, bool]) -> None:
    tree = obligations(HANDBOOK, HANDBOOK.procedures["lend"])

    def holds(predicate: str, arguments: Binding) -> bool:
        return truth[predicate]

    # The reads are behind the login, so a refused login decides unless `small` already did.
    expected = meaning(tree, holds) and truth["logged_in"]
    one = replace(
        scenario(LEND + "expect: executed"),
        inputs={
            "user": "Ada",
            "password": "pw",
            "amount": 50 if truth["small"] else 500,
            "purpose": "a roof",
        },
        tools={
            "login": (ScriptedAnswer(ToolResult(truth["logged_in"], truth["logged_in"])),),
            "read_file": (
                ScriptedAnswer(
                    ToolResult(True, {"solvent": truth["solvent"], "guarantor": truth["guarantor"]})
                ),
            ),
            "read_flags": (ScriptedAnswer(ToolResult(True, {"flagged": truth["flagged"]})),),
        },
        verdicts={"sensible": (ScriptedRuling(truth["sensible"]),)},
    )
    result = run(one)
    assert result.passed is expected
    opposite = replace(one, expect=Expectation(Ending.REFUSED))
    assert run(opposite).passed is not expected
    unmet = {leaf.predicate for leaf in leaves(tree) if truth[leaf.predicate] != leaf.wanted}
    if not truth["logged_in"]:
        unmet.add("logged_in")
    assert set(result.causes) <= unmet
    assert expected or result.causes
    touched = Coverage()
    touched.add(BRIEFING.programs["lend"], result.events)
    reached = coverage_of("lend", BRIEFING.programs["lend"], touched)
    assert 0 < reached.steps_reached < reached.steps  # one run cannot both act and refuse
    assert reached.branches_reached < reached.branches


def test_coverage_adds_up_until_nothing_is_missing() -> None:
    bodies = [
        LEND + "expect: executed",
        LEND + "expect: refused\ntools: {login: failed}",
        LEND + "expect: refused\ntools: {read_flags: {flagged: true}}",
        LEND + "expect: refused\ntools: {read_file: {solvent: false, guarantor: false}}",
        LEND + "expect: executed\ntools: {read_file: {solvent: false, guarantor: true}}",
        LEND.replace("amount: 50", "amount: 500") + "expect: {refused: small}",
        LEND.replace("sensible: true", "sensible: false") + "expect: {refused: sensible}",
    ]
    program = BRIEFING.programs["lend"]
    touched = Coverage()
    counts = [(0, 0)]
    for body in bodies:
        result = outcome(body, GOOD_TOOLS)
        assert result.reasons == ()
        touched.add(program, result.events)
        now = coverage_of("lend", program, touched)
        counts.append((now.steps_reached, now.branches_reached))
        assert counts[-1][0] >= counts[-2][0]
        assert counts[-1][1] > counts[-2][1]  # every one of them opens a way that was closed
    assert counts[-1] == (now.steps, now.branches)
    assert now.gaps == ()


def test_a_gap_names_its_step_and_what_is_missing() -> None:
    result = outcome(LEND + "expect: executed")
    touched = Coverage()
    touched.add(BRIEFING.programs["lend"], result.events)
    gaps = [str(gap) for gap in coverage_of("lend", BRIEFING.programs["lend"], touched).gaps]
    assert "lend@refuse: never reached" in gaps
    assert "lend@check_flagged: no scenario in which this fails (flagged true)" in gaps
    assert "lend@decide: no scenario in which the condition is false" in gaps
