"""Cases from the scenarios of a handbook of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.desks.scenarios import Scenario, SimulatedTools, Suite
from sopilot.desks.scenarios.judging import ScenarioJudge
from sopilot.lab.discipline.called import MadeCall, calls_made, unproven
from sopilot.lab.discipline.case import Case, World
from sopilot.lab.stats import Kind
from sopilot.language.handbook import Handbook
from sopilot.language.program import Program
from sopilot.runtime.agent import Briefing, Ending, RoleApprovers, ScriptedUser, SessionResult
from sopilot.runtime.vm import Event

_KINDS = {Ending.EXECUTED: Kind.EXECUTE, Ending.REFUSED: Kind.REFUSE}


def scenario_cases(
    suite: Suite,
    handbook: Handbook,
    programs: Mapping[str, Program],
    *,
    whole_handbook: bool = True,
) -> list[Case]:
    """Scenarios that end in an execution or a refusal; one that waits for people has no
    counterpart without a machine and is left out."""
    whole = Briefing(handbook, programs)
    cases = []
    for scenario in suite.scenarios:
        kind = _KINDS.get(scenario.expect.ending)
        if kind is None:
            continue
        own = {scenario.goal: programs[scenario.goal]}
        cases.append(
            Case(
                id=scenario.name,
                domain=handbook.name,
                goal=scenario.goal,
                kind=kind,
                briefing=whole if whole_handbook else Briefing(handbook, own),
                goal_action=handbook.procedures[scenario.goal].action,
                open=lambda scenario=scenario: _open(scenario, handbook),  # type: ignore[misc]
                reader=ScenarioJudge(handbook, scenario.verdicts, frozenset(scenario.tools)),
            )
        )
    return cases


def _open(scenario: Scenario, handbook: Handbook) -> World:
    def judge(result: SessionResult, events: Sequence[Event]) -> Sequence[str]:
        return judge_run(scenario, handbook, result.ending, calls_made(events))

    request = scenario.request or f"I have a request: {scenario.goal.replace('_', ' ')}."
    return World(
        tools=SimulatedTools(handbook.actions, scenario.tools),
        user=ScriptedUser(request, scenario.knows, goal=scenario.goal),
        judge=judge,
        operator=RoleApprovers(scenario.approvals) if scenario.approvals else None,
    )


def judge_run(
    scenario: Scenario, handbook: Handbook, ending: Ending, calls: Sequence[MadeCall]
) -> list[str]:
    """By the ending, the calls that must and must not be made, and the evidence."""
    reasons = []
    if ending is not scenario.expect.ending:
        reasons.append(f"expected `{scenario.expect.ending}`, but the run ended `{ending}`")
    made = {one.action for one in calls}
    reasons += [f"`{action}` must not be called" for action in scenario.no_calls if action in made]
    left = iter(calls)
    for expected in scenario.calls:
        if not any(expected.fits(one.action, one.arguments) for one in left):
            reasons.append(f"`{expected.action}` was not called, or not in this order")
            break
    reasons += unproven(scenario, handbook, calls)
    return reasons
