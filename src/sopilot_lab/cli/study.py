"""``sopilot lab study``: a study as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import AS_JSON, FILE, NEW_FILE, NEW_FOLDER, option
from sopilot.cli.output import Exit, Output, progress, say
from sopilot.cli.watch import interrupted
from sopilot.files.text import write_whole
from sopilot_lab.cli.options import FILLED, RUNNER, shown
from sopilot_lab.cli.report import report_output
from sopilot_lab.cli.run import SweepWatcher
from sopilot_lab.experiments.study.cells import cell_status, run_study, study_cells
from sopilot_lab.experiments.study.estimate import plan_document, plan_lines, status_lines
from sopilot_lab.experiments.study.plan import PRESETS, load_study, preset
from sopilot_lab.experiments.study.results import study_document
from sopilot_lab.sopbench.process import shared_upstream

_file = click.argument("file", type=FILE)
_base = option(
    "--folder", "Folder for the runs. Default: beside FILE, under its name.", type=NEW_FOLDER
)


@click.group()
def study() -> None:
    """Run a study from one FILE: models, arms, tasks, repetitions and fixed hypotheses.

    `new` writes a file to start from, `plan` prints cost and power, `run` runs the study and
    resumes it, `status` prints its progress, `report` its results.
    """


@study.command()
@click.argument("file", type=NEW_FILE)
@shown("--preset", "Study to start from.", "name", type=click.Choice(PRESETS), default="paper")
@AS_JSON
def new(file: Path, name: str) -> Output:
    """Write a study to start from. `paper` is the paper's design; fill in the model names."""
    if file.exists():
        raise click.UsageError(f"{file} already exists")
    write_whole(file, preset(name))
    lines = [f"{file} written: edit the models, then `sopilot lab study plan {file}`"]
    return Output({"written": str(file)}, lines)


@study.command()
@_file
@_base
@AS_JSON
def plan(file: Path, folder: Path | None) -> Output:
    """Print cells, tasks, requests, tokens, cost and power before the first request."""
    whole, upstream = load_study(file), shared_upstream()
    progress("rehearsing with the reference executor …")
    answer = plan_document(whole, _folder(file, folder), upstream)
    return Output(answer, plan_lines(answer, whole.effect))


@study.command()
@_file
@_base
@RUNNER
@option("--arm", "Run only the cells of this arm (repeatable).", "arms", multiple=True)
@option("--at-once", "Tasks to run concurrently, as for `lab run`.", type=click.IntRange(1))
@AS_JSON
def run(
    file: Path, folder: Path | None, runner: Any, arms: tuple[str, ...], at_once: int | None
) -> Output:
    """Run every cell, one after the other. The same command resumes where it stopped."""
    whole, base = load_study(file), _folder(file, folder)
    cells = study_cells(whole, base, shared_upstream(), arms)
    planned = sum(len(cell.tasks) for cell in cells)
    watcher = SweepWatcher(planned)
    done, missing = [], 0
    try:
        ended = run_study(whole, cells, at_once=at_once, runner=runner, seen=watcher)
        for number, (cell, sweep) in enumerate(ended, 1):
            status = cell_status(cell)
            missing += status["missing"]
            done.append({**status, "ran": sweep.ran, "stopped": sweep.stopped})
            judged = f"{status['judged']} of {status['asked']} judged, {status['missing']} missing"
            why = f", {sweep.stopped}" if sweep.stopped else ""
            say(f"[{number}/{len(cells)}] {cell.label}: {judged}{why}", err=True)
    except KeyboardInterrupt:
        raise interrupted(watcher.judged, planned, base) from None
    answer = {"study": whole.name, "cells": done, "missing": missing}
    return Output(answer, (), Exit.if_any(missing))


@study.command()
@_file
@_base
@AS_JSON
def status(file: Path, folder: Path | None) -> Output:
    """Print the progress of every cell: judged, missing with reasons, broken runs, cost."""
    whole, upstream = load_study(file), shared_upstream()
    cells = study_cells(whole, _folder(file, folder), upstream)
    rows = [cell_status(cell) for cell in cells]
    answer = {"study": whole.name, "hypotheses": whole.fixed.sha256, "cells": rows}
    return Output(answer, status_lines(rows))


@study.command()
@_file
@_base
@option("-o,--output", "Folder to write the report to.", type=NEW_FOLDER)
@FILLED
@AS_JSON
def report(file: Path, folder: Path | None, output: Path | None, filled: bool) -> Output:
    """Print the tests of the hypotheses, then every table, marked as exploratory."""
    whole = load_study(file)
    document = study_document(whole, [_folder(file, folder) / "runs"], progress)
    return report_output(document, output, filled=filled)


def _folder(file: Path, path: Path | None) -> Path:
    return path or file.with_suffix("")
