"""A handbook's scenarios, run one after the other, and what none of them reached."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Watch, nobody_watches
from sopilot.files.text import write_whole
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model
from sopilot.records.loading import export_trace
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.coverage import Coverage, ProgramCoverage, coverage_of
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.scenarios import Scenario
from sopilot.tasks.task import Result, Task
from sopilot.trace.files import write_trace
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS


def named_scenarios(
    scenarios: Sequence[Scenario], names: Sequence[str], source: str
) -> Sequence[Scenario]:
    if not names:
        return scenarios
    known = {scenario.name: scenario for scenario in scenarios}
    unknown = [
        Diagnostic(
            "unknown-scenario",
            f"there is no scenario `{name}`",
            Place(source),
            did_you_mean(name, known),
        )
        for name in names
        if name not in known
    ]
    if unknown:
        raise UserMistake(unknown)
    return [known[name] for name in dict.fromkeys(names)]


@dataclass(frozen=True, slots=True)
class Tested:
    """Scenarios of a handbook with their results, and what they reached of its programs."""

    handbook: str
    results: Sequence[tuple[Scenario, Result]]
    coverage: Sequence[ProgramCoverage]

    @property
    def passed(self) -> int:
        return sum(result.passed is True for _, result in self.results)

    @property
    def failed(self) -> int:
        return len(self.results) - self.passed

    def as_json(self) -> dict[str, object]:
        return {
            "handbook": self.handbook,
            "n": len(self.results),
            "passed": self.passed,
            "failed": self.failed,
            "scenarios": [_row(scenario, result) for scenario, result in self.results],
            "coverage": {item.goal: item.as_json() for item in self.coverage},
        }


async def run_scenarios(
    briefing: Briefing,
    scenarios: Sequence[Scenario],
    *,
    watcher: Callable[[], Watch] = lambda: nobody_watches,
    player: Callable[[Task], Model] = lambda task: Reference(task.reader),
    traces: Path | None = None,
) -> Tested:
    """``watcher`` makes a watch for each run, ``player`` its model. ``traces`` is a folder for the
    trace of every run."""
    store, programs = MemoryStore(), ProgramSet.of(briefing.programs)
    results: list[tuple[Scenario, Result]] = []
    for scenario in scenarios:
        task = scenario_task(scenario, briefing)
        conditions = Conditions(VIEWS["pg"], player(task), watch=watcher())
        result = await run_task(task, task.open(), conditions, store=store, programs=programs)
        results.append((scenario, result))
        if traces is not None:
            text = write_trace(await export_trace(store, result.session_id))
            write_whole(traces / f"{_file_name(scenario.name)}.jsonl", text, private=True)
    coverage = _reached(briefing, [result for _, result in results])
    return Tested(briefing.handbook.name, results, coverage)


def _reached(briefing: Briefing, results: Sequence[Result]) -> list[ProgramCoverage]:
    touched = {goal: Coverage() for goal in briefing.programs}
    for result in results:
        events = [sealed.event for sealed in result.events]
        processes = {
            event.process: event.payload["goal"] for event in events if event.kind == "start"
        }
        for process, goal in processes.items():
            mine = [event for event in events if event.process == process]
            touched[goal].add(briefing.programs[goal], mine)
    return [
        coverage_of(goal, program, touched[goal]) for goal, program in briefing.programs.items()
    ]


def _row(scenario: Scenario, result: Result) -> dict[str, object]:
    verdict = result.verdict or {}
    return {
        "name": scenario.name,
        "goal": scenario.goal,
        "passed": result.passed is True,
        "ending": str(result.ending),
        "causes": verdict.get("causes", []),
        "calls": verdict.get("calls", []),
        "reasons": verdict.get("reasons", []),
        "session": result.session_id,
    }


def _file_name(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "scenario"


def coverage_lines(item: ProgramCoverage) -> Iterator[str]:
    if item.steps_reached == 0:
        yield f"\n{item.goal}: no scenario"
        return
    yield (
        f"\n{item.goal}: {item.steps_reached} of {item.steps} steps, "
        f"{item.branches_reached} of {item.branches} branches"
    )
    yield from (f"  {gap}" for gap in item.gaps)
