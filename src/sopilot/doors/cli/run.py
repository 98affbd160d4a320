"""``sopilot run``: one session from the request to its audit."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.adapters.model_by_name import MODEL_HELP
from sopilot.desks.bundled import bundled_names
from sopilot.doors.cli.checked_arm import ARM_HELP, checked_arm
from sopilot.doors.cli.folder_runs import ALL_TASKS, run_all, run_folder, show_all
from sopilot.doors.cli.given_values import chosen_budgets, pairs, read_results
from sopilot.doors.cli.output import json_option, say
from sopilot.doors.cli.run_and_audit import perform, show
from sopilot.doors.cli.scene import Description
from sopilot.doors.cli.sources import load_source
from sopilot.doors.cli.stores import STORE
from sopilot.doors.cli.workflow_folder import load_folder
from sopilot.doors.cli.written_world import check_results, missing_results, scenario_for
from sopilot.runtime.agent import ARMS


@click.command(
    help="Run one session of SOURCE: a bundled desk (bank-desk, clinic-desk, it-desk), a "
    "handbook file with a scenario file beside it or with --results, or a workflow folder "
    "(program.yaml, tools.py, tasks.yaml), whose Python is run.\n\n"
    f"MODEL is {MODEL_HELP} `person`: you make the moves.\n\nARM is one of: {', '.join(ARMS)}."
)
@click.argument("source")
@click.option("--goal", help="The procedure; a bundled desk takes its first task for it.")
@click.option(
    "--task",
    help="A task of a desk or folder, or a scenario; `all` runs every task of a folder. "
    "Default: the first.",
)
@click.option("--out", type=click.Path(), help="Where a workflow folder's tools work.")
@click.option("--model", default="reference", show_default=True, metavar="MODEL")
@click.option("--arm", metavar="ARM", help=ARM_HELP)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--request", help="What the user says first, instead of the task's request.")
@click.option("--knows", multiple=True, metavar="NAME=VALUE", help="What the user can tell.")
@click.option("--results", type=click.Path(), help="YAML: what each tool returns.")
@click.option("--approve", "approvers", multiple=True, metavar="ROLE", help="Approves at once.")
@click.option("--deep", is_flag=True, help="The larger budgets: 1,800 s and 5 user turns.")
@click.option("--budget", multiple=True, metavar="NAME=N", help="Another budget, by name.")
@click.option("--frames", is_flag=True, help="Show what the model is shown.")
@STORE
@json_option
def command(
    source: str,
    goal: str | None,
    task: str | None,
    out: str | None,
    model: str,
    arm: str | None,
    language: str,
    request: str | None,
    knows: tuple[str, ...],
    results: str | None,
    approvers: tuple[str, ...],
    deep: bool,
    budget: tuple[str, ...],
    frames: bool,
    store_spec: str | None,
    as_json: bool,
) -> None:
    if arm is None:
        arm = checked_arm(model, source)
    description = Description(
        source=source,
        goal=goal,
        task=task,
        model=model,
        arm=arm,
        language=language,
        request=request,
        knows=pairs("--knows", knows),
        results=read_results(results) if results else None,
        approvers=approvers,
        budgets=chosen_budgets(budget, deep=deep),
        out=run_folder(source, task, out),
    )
    if task == ALL_TASKS and description.out is not None:
        runs = run_all(description, store_spec)
        raise SystemExit(show_all(load_folder(source), runs, as_json=as_json))
    if not as_json:
        tell_world(description)
    performance = perform(description, store_spec, quiet=as_json, frames=frames)
    show(performance, as_json=as_json)
    if description.out is not None and not as_json:
        say(f"files: {description.out}")
    raise SystemExit(performance.exit_code)


def tell_world(description: Description) -> None:
    """Who answers for the tools of one's own handbook, on stderr."""
    source = description.source
    if source in bundled_names() or ":" in source or Path(source).is_dir():
        return
    handbook = load_source(source)
    if description.results is not None:
        check_results(description.results, handbook)
        silent = missing_results(handbook, description.results)
        if silent:
            named = ", ".join(f"`{name}`" for name in silent)
            click.echo(f"no result is written down for {named}: a call of it fails", err=True)
        return
    goals = [description.goal] if description.goal else list(handbook.procedures)
    if goals[0] not in handbook.procedures:
        return  # that is told where the goal is looked up
    scenario = scenario_for(description, handbook, goals)
    click.echo(f"the tools answer as in the scenario `{scenario.name}`", err=True)
