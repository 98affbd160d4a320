"""What came of a run of a scenario, held against what it expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.desks.scenarios._causes import refusal_causes
from sopilot.desks.scenarios._scenario import Scenario
from sopilot.desks.scenarios.made_calls import MadeCall, calls_made, unproven
from sopilot.language.handbook import Handbook
from sopilot.runtime.agent import Ending
from sopilot.runtime.session import Session
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Status

_WORDS = {
    Ending.EXECUTED: "the request was executed",
    Ending.REFUSED: "the request was refused",
    Ending.WAITING: "the run waits for people",
    Ending.ABANDONED: "nobody finished it",
    Ending.BUDGET: "a budget ran out",
    Ending.INFRASTRUCTURE_FAILURE: "the run broke down",
}


@dataclass(frozen=True, slots=True)
class ScenarioVerdict:
    """``reasons`` say why it failed, and are empty for a pass; ``causes`` are the predicates
    a refusal rests on."""

    reasons: tuple[str, ...]
    causes: tuple[str, ...] = ()
    calls: tuple[MadeCall, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "success": not self.reasons,
            "reasons": list(self.reasons),
            "causes": list(self.causes),
            "calls": [one.action for one in self.calls],
        }


def judge_run(
    scenario: Scenario,
    handbook: Handbook,
    ending: Ending,
    session: Session,
    *,
    why: str = "",
    problems: Sequence[str] = (),
) -> ScenarioVerdict:
    """``why`` is the reason that the run gave, ``problems`` is what its reader could not judge."""
    events = session.own_events
    causes: tuple[str, ...] | None = None
    for process in session.configuration.processes.values():
        causes = causes or ()
        if process.status is Status.FAILED:
            program = session.programs.programs[process.goal]
            causes = refusal_causes(handbook, program, process, events)
    calls = tuple(calls_made(events))
    reasons = judge_ending(
        scenario, handbook, ending, calls, causes=causes, why=why, problems=problems
    )
    return ScenarioVerdict(tuple(reasons), causes or (), calls)


def judge_ending(
    scenario: Scenario,
    handbook: Handbook,
    ending: Ending,
    calls: Sequence[MadeCall],
    *,
    causes: Sequence[str] | None = None,
    why: str = "",
    problems: Sequence[str] = (),
) -> list[str]:
    """By ending and cause, by the calls that must and must not be made, and by the evidence.
    Without a machine there are no ``causes``."""
    reasons = list(dict.fromkeys(problems)) or _ending_reasons(scenario, ending, why, causes)
    return reasons + judge_calls(scenario, handbook, calls, quiet=bool(reasons))


def judge_calls(
    scenario: Scenario, handbook: Handbook, calls: Sequence[MadeCall], *, quiet: bool = False
) -> list[str]:
    """By what reached the tools alone. ``quiet``: after another ending the calls differ anyway,
    and saying so would hide the cause."""
    reasons = _forbidden(scenario, calls)
    if quiet or reasons:
        return reasons
    return _out_of_order(scenario, calls) or unproven(scenario, handbook, calls)


def judge_outside(
    scenario: Scenario, handbook: Handbook, calls: Sequence[MadeCall]
) -> ScenarioVerdict:
    """Where only the calls are known: done is what the goal's action did."""
    action = handbook.procedures[scenario.goal].action
    done = any(one.action == action and one.ok for one in calls)
    wanted = scenario.expect.ending is Ending.EXECUTED
    reasons = []
    if done is not wanted:
        reasons = [f"expected `{scenario.expect.ending}`, but `{action}` was {_done(done)}"]
    reasons += judge_calls(scenario, handbook, calls, quiet=bool(reasons))
    return ScenarioVerdict(tuple(reasons), (), tuple(calls))


def _done(done: bool) -> str:
    return "carried out" if done else "not carried out"


def _ending_reasons(
    scenario: Scenario, ending: Ending, why: str, causes: Sequence[str] | None
) -> list[str]:
    expect = scenario.expect
    named = " and ".join(f"`{cause}`" for cause in causes or ())
    if ending is not expect.ending:
        happened = _WORDS[ending]
        if ending is Ending.REFUSED and named:
            happened += f" because of {named}"
        elif ending is not Ending.EXECUTED and why:
            happened += f" ({why.rstrip('.')})"
        return [f"expected `{expect.ending}`, but {happened}"]
    blames = expect.ending is Ending.REFUSED and expect.cause is not None
    if blames and causes is not None and expect.cause not in causes:
        found = f"{named} failed" if named else f"the reason was: {why.rstrip('.')}"
        return [f"expected a refusal because of `{expect.cause}`, but {found}"]
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
