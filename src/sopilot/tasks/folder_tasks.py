"""The tasks of a workflow folder: nothing here is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sopilot.agent.reference.judging import VerdictJudge
from sopilot.agent.result import Ending
from sopilot.tasks.coverage import Coverage, ProgramCoverage, coverage_of
from sopilot.tasks.folders import (
    FolderTask,
    InterruptedTools,
    RecordedVotes,
    WorkflowFolder,
    opening,
)
from sopilot.tasks.task import FinishedRun, Result, Surroundings, Task
from sopilot.values.json import JSON
from sopilot.values.text import Heading, table
from sopilot.views.briefing import Briefing


def folder_task(folder: WorkflowFolder, entry: FolderTask, out: Path, language: str = "en") -> Task:
    """``out`` is where its tools keep and make their files."""
    tools = InterruptedTools(folder.make_tools(entry, out), entry, out)
    handbook = folder.handbook(tools)
    expected = Ending(entry.expected) if entry.expected else None

    def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
        ending = run.result.ending if run is not None else None
        good = expected is None or ending is expected
        reasons = [] if good else [f"expected `{expected}`, but it ended `{ending}`"]
        return {"success": good, "reasons": reasons}

    return Task(
        source=folder.name,
        name=entry.id,
        goal=folder.goal,
        briefing=Briefing(handbook, {folder.goal: folder.program}, language),
        surround=lambda keep: Surroundings(tools, score if expected is not None else None),
        request=opening(entry.says, entry, folder),
        reader=VerdictJudge(handbook),
        inputs=entry.inputs,
        expected=expected,
        operator=RecordedVotes(entry.votes) if entry.votes else None,
        simulated=False,
        names_goal=False,
    )


def folder_coverage(folder: WorkflowFolder, results: Sequence[Result]) -> ProgramCoverage:
    """What the runs reached of the folder's program."""
    touched = Coverage()
    for result in results:
        touched.add(folder.program, [sealed.event for sealed in result.events])
    return coverage_of(folder.goal, folder.program, touched)


@dataclass(frozen=True, slots=True)
class TaskRun:
    task: FolderTask
    result: Result
    resumed: bool


def folder_lines(runs: Sequence[TaskRun], coverage: ProgramCoverage) -> Iterator[str]:
    rows = [
        (
            run.task.id,
            run.task.title,
            str(run.result.run.ending) + (" (resumed)" if run.resumed else ""),
            run.result.run.agent_turns,
            run.result.run.domain_calls,
            len(run.result.audit.findings),
            "yes" if run.result.good else "NO",
        )
        for run in runs
    ]
    yield table(rows, ("task", "what", "ending", "turns", "calls", "findings", "as expected"))
    yield ""
    for run in runs:
        if run.result.run.ending is Ending.REFUSED:
            yield f"task {run.task.id}: {run.result.run.reason}"
    yield ""
    yield Heading(
        f"steps reached {coverage.steps_reached}/{coverage.steps}, "
        f"branches {coverage.branches_reached}/{coverage.branches}"
    )
    for gap in coverage.gaps:
        yield f"  not reached: {gap}"
