"""Tasks of your own handbook: its scenarios, or results in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.judging import VerdictJudge
from sopilot.tasks.scenario_verdict import ScenarioJudge, judge_outside, judge_run
from sopilot.tasks.scenarios import Scenario, SimulatedTools, request_for, scripted_results
from sopilot.tasks.task import FinishedRun, ReplayedTools, Simulation, Task
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing

BUDGETS = Budgets(user_turns=20, domain_calls=200, agent_turns=1_000)
"""A scenario tests the procedure, not the budgets of a run."""


def scenario_task(scenario: Scenario, briefing: Briefing) -> Task:
    handbook = briefing.handbook
    reader = ScenarioJudge(handbook, scenario.verdicts, frozenset(scenario.tools))

    def surround(keep: Path | None) -> Simulation:
        reader.problems.clear()
        tools = SimulatedTools(handbook.actions, scenario.tools, scenario.now)

        def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
            if run is None:
                return judge_outside(scenario, handbook, tools.made).as_json()
            return judge_run(scenario, handbook, run, reader.problems).as_json()

        return Simulation(ReplayedTools(tools), score=score)

    return Task(
        source=handbook.name,
        name=scenario.name,
        goal=scenario.goal,
        briefing=briefing,
        surround=surround,
        request=scenario.opening,
        reader=reader,
        inputs=scenario.inputs,
        expected=scenario.expect.ending,
        approvers=scenario.approvals,
        answers=scenario.answers,
        budgets=BUDGETS,
    )


def results_task(briefing: Briefing, results: Mapping[str, JSON], goal: str) -> Task:
    """Tools that answer as a file says; nothing is expected of it."""
    handbook = briefing.handbook
    answers = scripted_results(handbook.actions, results)
    return Task(
        source=handbook.name,
        name="",
        goal=goal,
        briefing=briefing,
        surround=lambda keep: Simulation(ReplayedTools(SimulatedTools(handbook.actions, answers))),
        request=request_for(goal) if goal else "",
        reader=VerdictJudge(handbook),
    )
