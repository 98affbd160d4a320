"""One scenario through the real loop: reference executor, arm ``pg``, simulated tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.desks.scenarios.causes import refusal_causes
from sopilot.desks.scenarios.judging import ScenarioJudge
from sopilot.desks.scenarios.scenario import Scenario
from sopilot.desks.scenarios.world import SimulatedTools
from sopilot.runtime.agent import (
    ARMS,
    Briefing,
    Budgets,
    Ending,
    Reference,
    RoleApprovers,
    ScriptedUser,
    SessionResult,
    Watch,
    open_run,
    run_session,
)
from sopilot.runtime.agent.progress import nobody_watches
from sopilot.runtime.session import ProgramSet, Store
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Event, Status

BUDGETS = Budgets(user_turns=20, domain_calls=200, agent_turns=1_000)
"""A scenario tests the procedure, not the budgets of a run."""

_WORDS = {
    Ending.EXECUTED: "the request was executed",
    Ending.REFUSED: "the request was refused",
    Ending.WAITING: "the run waits for people",
    Ending.ABANDONED: "nobody finished it",
    Ending.BUDGET: "a budget ran out",
    Ending.INFRASTRUCTURE_FAILURE: "the run broke down",
}


@dataclass(frozen=True, slots=True)
class MadeCall:
    action: str
    arguments: Mapping[str, JSON]
    ok: bool


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """``reasons`` say why it failed, and are empty for a pass; ``causes`` are the predicates
    a refusal rests on."""

    scenario: Scenario
    session: SessionResult
    reasons: tuple[str, ...]
    causes: tuple[str, ...]
    calls: tuple[MadeCall, ...]
    events: tuple[Event, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons

    def as_json(self) -> dict[str, JSON]:
        return {
            "name": self.scenario.name,
            "goal": self.scenario.goal,
            "passed": self.passed,
            "ending": str(self.session.ending),
            "causes": list(self.causes),
            "calls": [one.action for one in self.calls],
            "reasons": list(self.reasons),
            "session": self.session.session_id,
        }


async def run_scenario(
    scenario: Scenario,
    briefing: Briefing,
    *,
    store: Store,
    programs: ProgramSet | None = None,
    watch: Watch = nobody_watches,
    session_id: str | None = None,
) -> ScenarioResult:
    """Run it to its end and hold it against what it expects."""
    handbook = briefing.handbook
    tools = SimulatedTools(handbook.actions, scenario.tools)
    judge = ScenarioJudge(handbook, scenario.verdicts, frozenset(scenario.tools))
    arm = ARMS["pg"]
    session = await open_run(
        store, briefing, arm, tools=tools, model="reference",
        programs=programs, session_id=session_id,
    )  # fmt: skip
    async with session:
        outcome = await run_session(
            session,
            briefing,
            arm=arm,
            model=Reference(judge),
            user=ScriptedUser(
                scenario.request or _request(scenario.goal), scenario.knows, goal=scenario.goal
            ),
            budgets=BUDGETS,
            operator=RoleApprovers(scenario.approvals) if scenario.approvals else None,
            watch=watch,
        )
    events = tuple(sealed.event for sealed in session.events)
    causes: tuple[str, ...] = ()
    for process in session.configuration.processes.values():
        if process.status is Status.FAILED:
            program = briefing.programs[process.goal]
            causes = refusal_causes(handbook, program, process, events)
    calls = tuple(_calls(events))
    reasons = _ending_reasons(scenario, outcome, causes, judge.problems)
    reasons += _forbidden(scenario, calls)
    if not reasons:
        # After another ending the calls differ anyway; saying so would hide the cause.
        reasons = _out_of_order(scenario, calls)
    return ScenarioResult(scenario, outcome, tuple(reasons), causes, calls, events)


def _request(goal: str) -> str:
    return f"I have a request: {goal.replace('_', ' ')}."


def _calls(events: Sequence[Event]) -> list[MadeCall]:
    results = {
        event.payload["call"]: event.payload["ok"]
        for event in events
        if event.kind == "domain_result"
    }
    return [
        MadeCall(event.payload["action"], event.payload["arguments"], results[event.seq])
        for event in events
        if event.kind == "domain_call" and event.seq in results
    ]


def _ending_reasons(
    scenario: Scenario, outcome: SessionResult, causes: Sequence[str], problems: Sequence[str]
) -> list[str]:
    if problems:
        return list(dict.fromkeys(problems))
    expect = scenario.expect
    named = " and ".join(f"`{cause}`" for cause in causes)
    if outcome.ending is not expect.ending:
        happened = _WORDS[outcome.ending]
        if outcome.ending is Ending.REFUSED and named:
            happened += f" because of {named}"
        elif outcome.ending is not Ending.EXECUTED and outcome.reason:
            happened += f" ({outcome.reason.rstrip('.')})"
        return [f"expected `{expect.ending}`, but {happened}"]
    if expect.ending is Ending.REFUSED and expect.cause is not None and expect.cause not in causes:
        why = f"{named} failed" if named else f"the reason was: {outcome.reason.rstrip('.')}"
        return [f"expected a refusal because of `{expect.cause}`, but {why}"]
    return []


def _forbidden(scenario: Scenario, calls: Sequence[MadeCall]) -> list[str]:
    return [
        f"`{action}` must not be called, but it was"
        for action in dict.fromkeys(one.action for one in calls)
        if action in scenario.no_calls
    ]


def _out_of_order(scenario: Scenario, calls: Sequence[MadeCall]) -> list[str]:
    """The first expected call that does not come after those before it."""
    left = iter(calls)
    for expected in scenario.calls:
        if not any(expected.fits(one.action, one.arguments) for one in left):
            made = ", ".join(f"`{one.action}`" for one in calls) or "none"
            with_arguments = " with these arguments" if expected.arguments else ""
            return [
                f"expected a call of `{expected.action}`{with_arguments} in this order; "
                f"the calls were {made}"
            ]
    return []
