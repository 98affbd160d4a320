"""The scenarios of a handbook, run one after the other: what came of each, and what none of
them reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Watch
from sopilot.files.text import write_whole
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model
from sopilot.records.loading import export_trace
from sopilot.records.store import Store
from sopilot.tasks.coverage import Coverage, ProgramCoverage, coverage_of
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.scenarios import Scenario
from sopilot.tasks.task import Result, Task
from sopilot.trace.files import write_trace
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

Tested = tuple[Scenario, Result]


def named_scenarios(
    scenarios: Sequence[Scenario], names: Sequence[str], source: str
) -> Sequence[Scenario]:
    if not names:
        return scenarios
    known = {scenario.name: scenario for scenario in scenarios}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserMistake(
            [
                Diagnostic(
                    "unknown-scenario",
                    f"there is no scenario `{name}`",
                    Place(source),
                    did_you_mean(name, known),
                )
                for name in unknown
            ]
        )
    return [known[name] for name in dict.fromkeys(names)]


async def run_scenarios(
    briefing: Briefing,
    scenarios: Sequence[Scenario],
    store: Store,
    *,
    watcher: Callable[[], Watch],
    player: Callable[[Task], Model] = lambda task: Reference(task.reader),
    traces: Path | None = None,
) -> list[Tested]:
    """``player`` makes the moves. ``traces`` is a folder for the trace of every run."""
    programs = ProgramSet.of(briefing.programs)
    results = []
    for scenario in scenarios:
        task = scenario_task(scenario, briefing)
        conditions = Conditions(VIEWS["pg"], player(task), watch=watcher())
        result = await run_task(task, task.open(), conditions, store=store, programs=programs)
        results.append((scenario, result))
        if traces is not None:
            text = write_trace(await export_trace(store, result.session_id))
            write_whole(traces / f"{_file_name(scenario.name)}.jsonl", text, private=True)
    return results


def reached(briefing: Briefing, results: Sequence[Tested]) -> list[ProgramCoverage]:
    touched = {goal: Coverage() for goal in briefing.programs}
    for _, result in results:
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


def summary(
    handbook: str, results: Sequence[Tested], coverage: Sequence[ProgramCoverage]
) -> dict[str, object]:
    passed = sum(result.passed is True for _, result in results)
    return {
        "handbook": handbook,
        "n": len(results),
        "passed": passed,
        "failed": len(results) - passed,
        "scenarios": [_row(scenario, result) for scenario, result in results],
        "coverage": {item.goal: item.as_json() for item in coverage},
    }


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


def coverage_lines(program_coverage: ProgramCoverage) -> Iterator[str]:
    if program_coverage.steps_reached == 0:
        yield f"\n{program_coverage.goal}: no scenario"
        return
    yield (
        f"\n{program_coverage.goal}: {program_coverage.steps_reached} of "
        f"{program_coverage.steps} steps, "
        f"{program_coverage.branches_reached} of {program_coverage.branches} branches"
    )
    for gap in program_coverage.gaps:
        yield f"  {gap}"
