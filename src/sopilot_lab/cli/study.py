"""``sopilot lab study``: a study as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import FILE, NEW_FILE, NEW_FOLDER, json_option
from sopilot.cli.output import Exit, give, print_json, progress, say
from sopilot.cli.watch import interrupted
from sopilot.files.text import write_whole
from sopilot_lab.cli.options import FILLED, RUNNER
from sopilot_lab.cli.report import hand_over
from sopilot_lab.cli.run import SweepWatcher
from sopilot_lab.experiments.study.cells import cell_status, run_study, study_cells
from sopilot_lab.experiments.study.estimate import plan_document, plan_lines, status_lines
from sopilot_lab.experiments.study.plan import PRESETS, load_study, preset
from sopilot_lab.experiments.study.results import study_document
from sopilot_lab.sopbench.process import shared_upstream

_file = click.argument("file", type=FILE)
_base = click.option(
    "--folder", type=NEW_FOLDER, help="Folder for the runs. Default: beside FILE, under its name."
)


@click.group()
def study() -> None:
    """Run a study from one FILE: models, arms, tasks, repetitions and fixed hypotheses.

    `new` writes a file to start from, `plan` prints cost and power, `run` runs the study and
    resumes it, `status` prints its progress, `report` its results.
    """


@study.command()
@click.argument("file", type=NEW_FILE)
@click.option(
    "--preset",
    "name",
    type=click.Choice(PRESETS),
    default="paper",
    show_default=True,
    help="Study to start from.",
)
@json_option
def new(file: Path, name: str, as_json: bool) -> None:
    """Write a study to start from. `paper` is the paper's design; fill in the model names."""
    if file.exists():
        raise click.UsageError(f"{file} already exists")
    write_whole(file, preset(name))
    lines = [f"{file} written: edit the models, then `sopilot lab study plan {file}`"]
    give(as_json, {"written": str(file)}, lines)


@study.command()
@_file
@_base
@json_option
def plan(file: Path, folder: Path | None, as_json: bool) -> None:
    """Print cells, tasks, requests, tokens, cost and power before the first request."""
    whole, upstream = load_study(file), shared_upstream()
    progress("rehearsing with the reference executor …")
    answer = plan_document(whole, _folder(file, folder), upstream)
    give(as_json, answer, plan_lines(answer, whole.effect))


@study.command()
@_file
@_base
@RUNNER
@click.option("--arm", "arms", multiple=True, help="Run only the cells of this arm (repeatable).")
@click.option(
    "--at-once", type=click.IntRange(1), help="Tasks to run concurrently, as for `lab run`."
)
@json_option
def run(
    file: Path, folder: Path | None, runner: Any, arms: tuple[str, ...], at_once: int | None,
    as_json: bool,
) -> None:  # fmt: skip
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
    if as_json:
        print_json({"study": whole.name, "cells": done, "missing": missing})
    if missing:
        sys.exit(Exit.FINDINGS)


@study.command()
@_file
@_base
@json_option
def status(file: Path, folder: Path | None, as_json: bool) -> None:
    """Print the progress of every cell: judged, missing with reasons, broken runs, cost."""
    whole, upstream = load_study(file), shared_upstream()
    cells = study_cells(whole, _folder(file, folder), upstream)
    rows = [cell_status(cell) for cell in cells]
    answer = {"study": whole.name, "hypotheses": whole.fixed.sha256, "cells": rows}
    give(as_json, answer, status_lines(rows))


@study.command()
@_file
@_base
@click.option("-o", "--output", type=NEW_FOLDER, help="Folder to write the report to.")
@FILLED
@json_option
def report(
    file: Path, folder: Path | None, output: Path | None, filled: bool, as_json: bool
) -> None:
    """Print the tests of the hypotheses, then every table, marked as exploratory."""
    whole = load_study(file)
    document = study_document(whole, [_folder(file, folder) / "runs"], progress)
    hand_over(document, output, as_json, filled=filled)


def _folder(file: Path, path: Path | None) -> Path:
    return path or file.with_suffix("")
