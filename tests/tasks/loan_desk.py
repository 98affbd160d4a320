"""A small handbook that has every shape a scenario can meet, and a way to run one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from small_desks import programs_of
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import SessionResult
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.scenario_verdict import calls_made
from sopilot.tasks.scenarios import MadeCall, Scenario, load_scenarios
from sopilot.trace.events import Event
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

HANDBOOK_TEXT = """\
handbook: loan-desk
parameters: {limit: 100}
actions:
  login: {input: {user: string, password: string}}
  read_file: {input: {user: string}, requires: logged_in(user)}
  read_flags: {input: {user: string}}
  lend:
    input: {user: string, amount: number, purpose: string}
    irreversible: true
    approval: supervisor
  close: {input: {user: string, other: string}}
predicates:
  logged_in(user):
    says: "{user} has logged in."
    established_by: login(user, password)
  solvent(user):
    says: "{user} is solvent."
    verify: read_file(user)
    verdict: result.solvent
  guarantor(user):
    says: "{user} has a guarantor."
    verify: read_file(user)
    verdict: result.guarantor
  flagged(user):
    says: "{user} is flagged."
    verify: read_flags(user)
    verdict: result.flagged
  small(amount):
    says: The amount is at most {limit}.
    verify: arguments
    verdict: amount <= limit
  sensible(purpose):
    says: The purpose {purpose} is sensible.
    verify: arguments
    judged_by: model
procedures:
  lend:
    requires:
      all:
        - small(amount)
        - any: [solvent(user), guarantor(user)]
        - not: flagged(user)
        - sensible(purpose)
  close:
    requires: {first: [flagged(user), flagged(other)]}
"""

FACTS = "inputs: {user: Ada, password: pw, amount: 50, purpose: a roof, other: Bob}"
GOOD_TOOLS = """\
tools:
  read_file: {solvent: true, guarantor: false}
  read_flags: {flagged: false}
"""


def loan_handbook() -> Handbook:
    return load_handbook(HANDBOOK_TEXT, "loan-desk.yaml")


HANDBOOK = loan_handbook()
BRIEFING = Briefing(HANDBOOK, programs_of(HANDBOOK))


def suite_text(body: str, tools: str = GOOD_TOOLS) -> str:
    """A file with the one scenario ``it``; ``body`` are its lines, unindented."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"handbook: loan-desk\n{tools}scenarios:\n  it:\n{lines}\n"


def scenario(body: str, tools: str = GOOD_TOOLS) -> Scenario:
    return load_scenarios(suite_text(body, tools), HANDBOOK, "it.yaml").scenarios[0]


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    session: SessionResult
    reasons: tuple[str, ...]
    causes: tuple[str, ...]
    calls: tuple[MadeCall, ...]
    events: tuple[Event, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons


def run_scenario(one: Scenario, briefing: Briefing) -> ScenarioRun:
    """As `sopilot test` runs it."""
    task = scenario_task(one, briefing)
    conditions = Conditions(VIEWS["pg"], Reference(task.reader))
    result = asyncio.run(run_task(task, task.open(), conditions, store=MemoryStore()))
    verdict = result.verdict
    assert verdict is not None
    events = tuple(sealed.event for sealed in result.events)
    calls = tuple(calls_made(events))
    assert verdict["calls"] == [call.action for call in calls]
    assert verdict["success"] is not bool(verdict["reasons"])
    return ScenarioRun(
        result.run, tuple(verdict["reasons"]), tuple(verdict["causes"]), calls, events
    )


def run(one: Scenario) -> ScenarioRun:
    return run_scenario(one, BRIEFING)


def outcome(body: str, tools: str = GOOD_TOOLS) -> ScenarioRun:
    return run(scenario(body, tools))
