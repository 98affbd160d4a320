"""Every task of a workflow folder, one after the other, and what none of them reached."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from sopilot.cli.output import give
from sopilot.cli.run_and_audit import perform
from sopilot.runner.options import RunOptions
from sopilot.runner.sources import FolderSource
from sopilot.tasks.folder_tasks import TaskRun, folder_coverage, folder_lines

ALL_TASKS = "all"


def run_all(options: RunOptions, source: FolderSource, store_spec: str | None) -> list[TaskRun]:
    """Runs that the task cuts off are resumed, as a person would."""
    runs = []
    for task in source.folder.tasks:
        out = source.out / f"task-{task.id}"
        item = replace(options, task=task.id, out=str(out))
        session_id = secrets.token_hex(16)
        resumed = False
        try:
            result = perform(item, store_spec, new_id=session_id, quiet=True)
        except SystemExit:
            if task.interrupted_after is None:
                raise
            resumed = True
            result = perform(item, store_spec, resume_id=session_id, quiet=True)
        runs.append(TaskRun(task, result, resumed))
    return runs


def show_all(source: FolderSource, runs: Sequence[TaskRun], *, as_json: bool) -> int:
    """Prints the table; the exit code says whether every task came out as it should."""
    folder = source.folder
    coverage = folder_coverage(folder, [run.result for run in runs])
    give(
        as_json,
        {
            "folder": folder.name,
            "n": len(runs),
            "passed": sum(run.result.good for run in runs),
            "coverage": coverage.as_json(),
            "tasks": [{"id": run.task.id, **run.result.as_json()} for run in runs],
        },
        folder_lines(runs, coverage),
    )
    return 0 if all(run.result.good for run in runs) else 1
