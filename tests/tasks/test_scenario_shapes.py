"""Shapes that only some procedures have: one predicate about two things, a result used twice."""

from __future__ import annotations

from loan_desk import ScenarioRun, run_scenario

from small_desks import programs_of
from sopilot.handbook.reader import load_handbook
from sopilot.tasks.coverage import Coverage, coverage_of
from sopilot.tasks.scenarios import load_scenarios
from sopilot.views.briefing import Briefing

HEAD = """\
handbook: shapes
actions:
  look: {input: {thing: string}}
  act: {input: {one: string, two: string, amount: number}}
predicates:
  red(thing): {says: "{thing} is red.", verify: look(thing), verdict: result.red}
  round(thing): {says: "{thing} is round.", verify: look(thing), verdict: result.round}
  small(amount): {says: It is small., verify: arguments, verdict: amount < 10}
procedures:
  act:
    requires:
"""


def outcome(requires: str, scenario: str) -> tuple[ScenarioRun, Coverage, Briefing]:
    handbook = load_handbook(HEAD + "".join(f"      {line}\n" for line in requires.splitlines()))
    briefing = Briefing(handbook, programs_of(handbook))
    text = "handbook: shapes\nscenarios:\n  it:\n    goal: act\n"
    text += "".join(f"    {line}\n" for line in scenario.splitlines())
    one = load_scenarios(text, handbook).scenarios[0]
    result = run_scenario(one, briefing)
    touched = Coverage()
    touched.add(briefing.programs["act"], result.events)
    return result, touched, briefing


def test_a_cause_is_about_the_right_thing() -> None:
    result, _, _ = outcome(
        "in_order: [red(one), not: red(two), small(amount)]",
        "inputs: {one: a, two: b, amount: 50}\n"
        "tools: {look: [{when: {thing: a}, result: {red: true}}, {red: false}]}\n"
        "expect: {refused: red}",
    )
    assert result.causes == ("small",)
    assert result.reasons == ("expected a refusal because of `red`, but `small` failed",)


def test_a_result_that_is_used_again_counts_there_too() -> None:
    result, touched, briefing = outcome(
        "first:\n  - in_order: [red(one), round(one)]\n  - in_order: [red(one), small(amount)]",
        "inputs: {one: a, two: b, amount: 5}\n"
        "tools: {look: {red: true, round: false}}\nexpect: executed",
    )
    assert result.reasons == ()
    reused = [event.frame for event in result.events if event.kind == "reuse"]
    assert reused
    covered = coverage_of("act", briefing.programs["act"], touched)
    never_met = [gap.label for gap in covered.gaps if gap.way == "met"]
    assert never_met == ["check_round"]
