"""A run of one's own handbook: tools that answer as somebody wrote down, and who is served.

What they answer stands in a file of results, or in the scenario file beside the handbook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sopilot.desks.scenarios import Scenario, load_scenarios
from sopilot.desks.scenarios.judging import ScenarioJudge
from sopilot.desks.scenarios.world import SimulatedTools
from sopilot.doors.cli.human_user import HumanUser
from sopilot.doors.cli.sources import SCENARIOS, read_text
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.language.handbook import Handbook
from sopilot.runtime.agent import Judge, ScriptedTools, ScriptedUser, VerdictJudge
from sopilot.runtime.session.protocols import JSON, Tools, User

if TYPE_CHECKING:
    from sopilot.doors.cli.scene import Description


@dataclass(frozen=True, slots=True)
class WrittenWorld:
    """``expected`` is the ending that a scenario names, if it is played as it stands."""

    tools: Tools
    judge: Judge
    user: User
    approvers: tuple[str, ...] = ()
    expected: str | None = None


def written_world(description: Description, handbook: Handbook, goals: list[str]) -> WrittenWorld:
    if description.results is not None:
        return _with_results(description, description.results, handbook, goals)
    scenario = scenario_for(description, handbook, goals)
    user: User = HumanUser(description.request)
    played = not (description.person or description.request or description.knows)
    if not description.person:
        request = description.request or scenario.request or _request(scenario.goal)
        user = ScriptedUser(request, {**scenario.knows, **description.knows}, goal=scenario.goal)
    return WrittenWorld(
        SimulatedTools(handbook.actions, scenario.tools),
        ScenarioJudge(handbook, scenario.verdicts, frozenset(scenario.tools)),
        user,
        description.approvers or (() if description.person else scenario.approvals),
        str(scenario.expect.ending) if played else None,
    )


def scenario_for(description: Description, handbook: Handbook, goals: list[str]) -> Scenario:
    """The scenario that ``task`` names, else the first for one of the goals."""
    path = Path(description.source).with_suffix(SCENARIOS)
    if not path.exists():
        raise UserMistake(
            [
                Diagnostic(
                    "no-tools",
                    f"`{description.source}` comes without tools, and there is no `{path.name}` "
                    "that says what they answer",
                    Place(description.source),
                    "write what they return into a YAML file (action: result) and name it with "
                    "--results, or write scenarios, which `sopilot test` runs as well "
                    "(`sopilot new` shows some)",
                )
            ]
        )
    scenarios = load_scenarios(read_text(path), handbook, str(path)).scenarios
    for scenario in scenarios:
        if description.task == scenario.name or (
            description.task is None and scenario.goal in goals
        ):
            return scenario
    if description.task is None:
        raise _no_scenario(path, f"there is no scenario for `{goals[0]}`", "write one")
    names = [scenario.name for scenario in scenarios]
    message = f"there is no scenario `{description.task}`"
    raise _no_scenario(path, message, did_you_mean(description.task, names))


def missing_results(handbook: Handbook, results: Mapping[str, JSON]) -> list[str]:
    """The offered actions of which a file of results says nothing: a call of them fails."""
    offered = (name for name, action in handbook.actions.items() if action.offered)
    return [name for name in offered if name not in results]


def _with_results(
    description: Description, results: Mapping[str, JSON], handbook: Handbook, goals: list[str]
) -> WrittenWorld:
    check_results(results, handbook)
    if description.task is not None:
        raise UserMistake("--task names a scenario, which has results of its own: drop --results")
    user: User = HumanUser(description.request)
    if not description.person:
        if len(goals) != 1:
            raise UserMistake(f"name the goal with --goal: {', '.join(goals)}")
        request = description.request or _request(goals[0])
        user = ScriptedUser(request, description.knows, goal=goals[0])
    tools = ScriptedTools(handbook.actions, results)
    return WrittenWorld(tools, VerdictJudge(handbook), user, description.approvers)


def check_results(results: Mapping[str, JSON], handbook: Handbook) -> None:
    place = Place("--results")
    if "scenarios" in results and "scenarios" not in handbook.actions:
        raise UserMistake(
            [
                Diagnostic(
                    "scenarios-as-results",
                    "this is a scenario file, not a file of results (action: result)",
                    place,
                    "leave --results out: `--task NAME` plays one of the scenarios beside the "
                    "handbook, `sopilot test` runs them all",
                )
            ]
        )
    unknown: Sequence[str] = [name for name in results if name not in handbook.actions]
    if unknown:
        raise UserMistake(
            [
                Diagnostic(
                    "unknown-action",
                    f"there is no action `{name}`",
                    place,
                    did_you_mean(str(name), handbook.actions),
                )
                for name in unknown
            ]
        )


def _no_scenario(path: Path, message: str, cure: str) -> UserMistake:
    return UserMistake([Diagnostic("unknown-scenario", message, Place(str(path)), cure)])


def _request(goal: str) -> str:
    return f"I would like to {goal.replace('_', ' ')}."
