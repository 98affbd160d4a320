"""``sopilot bench study``: a study as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import FILE, NEW_FILE, NEW_FOLDER
from sopilot.cli.output import give, json_option, print_json, progress, say
from sopilot.cli.watch import interrupted
from sopilot.files.text import write_whole
from sopilot_lab.cli.bench_report import hand_over
from sopilot_lab.cli.options import FILLED
from sopilot_lab.cli.watch import SweepWatcher
from sopilot_lab.experiments.study.cells import cell_status, run_study, study_cells
from sopilot_lab.experiments.study.plan import PRESETS, load_study, preset
from sopilot_lab.experiments.study.plan_text import plan_document, plan_lines, status_lines
from sopilot_lab.experiments.study.results import study_document
from sopilot_lab.sopbench.process import shared_upstream

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
@click.option("--arm", "arms", multiple=True, help="Only the cells of this arm; may be repeated.")
@click.option("--at-once", type=click.IntRange(1), help="Tasks at a time, as for `bench run`.")
@json_option
def run(
    file: Path, folder: Path | None, runner: Any, arms: tuple[str, ...], at_once: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Run every cell, one after the other. The same command resumes where it stopped."""
    whole, base = load_study(file), _folder(file, folder)
    cells = study_cells(whole, base, shared_upstream(), arms)
    asked = sum(len(one.tasks) for one in cells)
    told = SweepWatcher(asked)
    done, missing = [], 0
    try:
        for step in run_study(whole, cells, at_once=at_once, runner=runner, seen=told):
            status = cell_status(step.cell)
            missing += status["missing"]
            done.append({**status, "ran": step.sweep.ran, "stopped": step.sweep.stopped})
            say(step.line(status), err=True)
    except KeyboardInterrupt:
        raise interrupted(told.judged, asked, base) from None
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
    cells = study_cells(whole, _folder(file, folder), upstream)
    rows = [cell_status(cell) for cell in cells]
    answer = {"study": whole.name, "hypotheses": whole.fixed.sha256, "cells": rows}
    give(as_json, answer, status_lines(rows))


@study.command()
@_file
@_base
@click.option("-o", "--output", type=NEW_FOLDER, help="Write it here.")
@FILLED
@json_option
def report(
    file: Path, folder: Path | None, output: Path | None, filled: bool, as_json: bool
) -> None:
    """The hypotheses' tests, then every table of the study, marked as exploratory."""
    whole = load_study(file)
    document = study_document(whole, [_folder(file, folder) / "runs"], progress)
    hand_over(document, output, as_json, filled=filled)


def _folder(file: Path, given: Path | None) -> Path:
    return given or file.with_suffix("")
