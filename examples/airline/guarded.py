"""One action of the airline through the compiled procedure, the guard and the audit.

The reference executor makes the reads that the procedure asks for, puts its questions to a user
who answers as told, and calls the action. What it was allowed to do is what the guard licensed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sopilot.agent.reference.executor import Reference
from sopilot.runner.sources import TaskSource, open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.benchmarks import BenchmarkTask, benchmark_task
from sopilot.tasks.run import Conditions, run_task
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS

from .simulator import AirlineTools

FOLDER = str(Path(__file__).parent)


def airline_source() -> TaskSource:
    return open_source(FOLDER)


@dataclass(frozen=True, slots=True)
class Attempt:
    """``made`` are the arguments that the action was carried out with, if it was; ``broken``
    the rules that stood against it; ``findings`` what the audit says of the session."""

    ending: str
    made: Mapping[str, JSON] | None
    broken: tuple[str, ...]
    findings: tuple[str, ...]
    reason: str

    @property
    def licensed(self) -> bool:
        return self.made is not None


@dataclass(frozen=True, slots=True)
class _AnySimulation:
    """A simulation without a verdict."""

    tools: AirlineTools

    def verdict(self, messages: int, said: Sequence[str] | None) -> Mapping[str, JSON]:
        return {"success": True}

    def close(self) -> None:
        return


async def attempt(
    source: TaskSource,
    tools: AirlineTools,
    goal: str,
    inputs: Mapping[str, JSON],
    answers: Mapping[str, str] | None = None,
) -> Attempt:
    entry = BenchmarkTask("attempt", f"I want {goal}", goal, inputs, answers or {})
    task = benchmark_task(source.name, entry, source.briefing(goal), lambda: _AnySimulation(tools))
    task = replace(task, names_goal=True)
    conditions = Conditions(VIEWS["pg"], Reference(task.reader))
    result = await run_task(task, task.open(), conditions, store=MemoryStore())
    action = task.goal_action
    calls = {
        one.event.payload["call_id"]: one.event.payload["arguments"]
        for one in result.events
        if one.event.kind == "domain_call" and one.event.payload["action"] == action
    }
    done = [
        calls[one.event.payload["call_id"]]
        for one in result.events
        if one.event.kind == "domain_result"
        and one.event.payload["call_id"] in calls
        and one.event.payload["ok"]
    ]
    return Attempt(
        str(result.ending),
        done[-1] if done else None,
        tuple(dict.fromkeys(one.rule for one in result.refusals)),
        tuple(one.code for one in result.audit.findings),
        result.reason,
    )


def copied(tools: AirlineTools) -> AirlineTools:
    """A copy of the simulator in its present state."""
    return AirlineTools(tools.classes, json.dumps(tools.data))
