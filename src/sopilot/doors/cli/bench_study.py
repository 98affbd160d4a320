"""``sopilot bench study``: a study as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.bench_report import hand_over
from sopilot.doors.terminal.option_types import FILE, NEW_FILE, NEW_FOLDER
from sopilot.doors.terminal.output import give, json_option, print_json, progress, say
from sopilot.doors.terminal.watching import SweepWatcher, interrupted
from sopilot.lab.bench import shared_upstream
from sopilot.lab.bench.study import (
    cell_status,
    load_study,
    preset,
    run_study,
    study_cells,
    study_document,
)
from sopilot.lab.bench.study.cells import study_tasks
from sopilot.lab.bench.study.plan import PRESETS
from sopilot.lab.bench.study.plan_text import plan_document, plan_lines, status_lines

_file = click.argument("file", type=FILE)
_base = click.option(
    "--folder", type=NEW_FOLDER, help="Where the runs are. Default: beside FILE, under its name."
)


@click.group()
def study() -> None:
    """A study as one FILE: models, arms, tasks, repetitions, and hypotheses fixed beforehand.

    `new` writes one to begin with, `plan` says what it costs and can see, `run` runs it and
    goes on where it was interrupted, `status` says where it stands, `report` what came of it.
    """


@study.command()
@click.argument("file", type=NEW_FILE)
@click.option("--preset", "name", type=click.Choice(PRESETS), default="paper", show_default=True)
def new(file: Path, name: str) -> None:
    """Write a study to begin with: `paper` repeats the paper's, once its names are yours."""
    if file.exists():
        raise click.UsageError(f"{file} is there already")
    write_whole(file, preset(name))
    say(f"{file} written: edit the models, then `sopilot bench study plan {file}`")


@study.command()
@_file
@_base
@json_option
def plan(file: Path, folder: Path | None, as_json: bool) -> None:
    """Cells, tasks, requests, tokens, cost and power, before the first request."""
    whole, upstream = load_study(file), shared_upstream()
    progress("rehearsing with the reference executor …")
    answer = plan_document(whole, _folder(file, folder), upstream)
    give(as_json, answer, plan_lines(answer, whole.effect))


@study.command()
@_file
@_base
@click.option("--runner", type=click.Choice(["inspect", "plain"]), help="As for `bench run`.")
@json_option
def run(file: Path, folder: Path | None, runner: Any, as_json: bool) -> None:
    """Run every cell, one after the other. The same command goes on where it stopped."""
    whole, upstream = load_study(file), shared_upstream()
    base = _folder(file, folder)
    told = SweepWatcher(len(study_tasks(whole, upstream)))
    done, missing = [], 0
    try:
        for step in run_study(whole, base, upstream, runner=runner, seen=told):
            status = cell_status(step.cell, step.sweep.asked)
            missing += status["missing"]
            done.append({**status, "ran": step.sweep.ran, "stopped": step.sweep.stopped})
            why = f", {step.sweep.stopped}" if step.sweep.stopped else ""
            say(
                f"[{step.number}/{step.cells}] {step.cell.label}: {status['judged']} of "
                f"{status['asked']} judged, {status['missing']} missing{why}",
                err=True,
            )
    except KeyboardInterrupt:
        raise interrupted(told.judged, len(study_tasks(whole, upstream)), base) from None
    if as_json:
        print_json({"study": whole.name, "cells": done, "missing": missing})
    if missing:
        sys.exit(1)


@study.command()
@_file
@_base
@json_option
def status(file: Path, folder: Path | None, as_json: bool) -> None:
    """Where every cell stands: judged, missing with reasons, broken runs, cost."""
    whole, upstream = load_study(file), shared_upstream()
    tasks = study_tasks(whole, upstream)
    cells = study_cells(whole, _folder(file, folder), upstream)
    rows = [cell_status(cell, tasks) for cell in cells]
    answer = {"study": whole.name, "hypotheses": whole.fixed.sha256, "cells": rows}
    give(as_json, answer, status_lines(rows))


@study.command()
@_file
@_base
@click.option("-o", "--output", type=NEW_FOLDER, help="Write it here.")
@json_option
def report(file: Path, folder: Path | None, output: Path | None, as_json: bool) -> None:
    """The hypotheses' tests, then every table of the study, marked as exploratory."""
    whole = load_study(file)
    document = study_document(whole, [_folder(file, folder) / "runs"], progress)
    hand_over(document, output, as_json)


def _folder(file: Path, given: Path | None) -> Path:
    return given or file.with_suffix("")
