"""``sopilot run``: one session from the request to its audit."""

from __future__ import annotations

from typing import Any

import click

from sopilot.cli.folder_runs import ALL_TASKS, run_all, show_all
from sopilot.cli.output import json_option, say, warn
from sopilot.cli.run_and_audit import TRUST, allow_code, default_view, perform, show
from sopilot.cli.stores import STORE
from sopilot.models.open import MODEL_HELP
from sopilot.runner.default_view import VIEW_HELP
from sopilot.runner.options import (
    RunOptions,
    chosen_budgets,
    read_results,
    run_folder,
    told,
    who_answers,
)
from sopilot.runner.sources import FolderSource, open_source
from sopilot.views.catalogue import VIEWS


@click.command(
    help="Run one session of SOURCE: a bundled example (bank, clinic, it), a "
    "handbook file with a scenario file beside it or with --results, or a workflow folder "
    "(program.yaml, tools.py, tasks.yaml), whose Python is run.\n\n"
    f"MODEL is {MODEL_HELP} `person`: you make the moves.\n\nVIEW is one of: {', '.join(VIEWS)}."
)
@click.argument("source")
@click.option("--goal", help="The procedure; a bundled example takes its first task for it.")
@click.option(
    "--task",
    help="A task of a desk or folder, or a scenario; `all` runs every task of a folder. "
    "Default: the first.",
)
@click.option("--out", type=click.Path(), help="Where a workflow folder's tools work.")
@click.option("--model", default="reference", show_default=True, metavar="MODEL")
@click.option("--view", metavar="VIEW", help=VIEW_HELP)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--request", help="What the user says first, instead of the task's request.")
@click.option(
    "--input", "inputs", multiple=True, metavar="NAME=VALUE", help="What the user can tell."
)
@click.option("--results", type=click.Path(), help="YAML: what each tool returns.")
@click.option("--approve", "approvers", multiple=True, metavar="ROLE", help="Approves at once.")
@click.option("--deep", is_flag=True, help="The larger budgets: 1,800 s and 5 user turns.")
@click.option("--budget", multiple=True, metavar="NAME=N", help="Another budget, by name.")
@click.option("--frames", is_flag=True, help="Show what the model is shown.")
@TRUST
@STORE
@json_option
def command(
    source: str,
    goal: str | None,
    task: str | None,
    out: str | None,
    view: str | None,
    inputs: tuple[str, ...],
    results: str | None,
    deep: bool,
    budget: tuple[str, ...],
    frames: bool,
    trust: bool,
    store_spec: str | None,
    as_json: bool,
    **value: Any,
) -> None:
    written = read_results(results) if results else None
    budgets = chosen_budgets(budget, deep=deep)
    opened = open_source(source, out=run_folder(source, task, out))
    allow_code(opened, trust=trust)
    typed = inputs and not isinstance(opened, FolderSource)
    known = told(inputs, opened.briefing(goal).programs if typed else {})
    options = RunOptions(
        source=source,
        goal=goal,
        task=task,
        view=view or default_view(value["model"], opened),
        inputs=known,
        results=written,
        budgets=budgets,
        out=str(opened.out) if isinstance(opened, FolderSource) else None,
        **value,
    )
    if isinstance(opened, FolderSource) and task == ALL_TASKS:
        raise SystemExit(show_all(opened, run_all(options, opened, store_spec), as_json=as_json))
    if not as_json:
        warn(who_answers(options, opened))
    done = perform(options, store_spec, source=opened, quiet=as_json, frames=frames)
    show(done, as_json=as_json)
    if options.out is not None and not as_json:
        say(f"files: {options.out}")
    raise SystemExit(0 if done.good else 1)
