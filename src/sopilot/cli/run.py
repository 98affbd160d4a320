"""``sopilot run``: one session from the request to its audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import yaml

from sopilot.adapters.model_by_name import MODEL_HELP
from sopilot.agent import ARMS, DEEP_BUDGETS
from sopilot.bundled import bundled_names
from sopilot.cli.checked_arm import DEFAULT, checked_arm
from sopilot.cli.folder_runs import ALL_TASKS, run_all, run_folder, show_all
from sopilot.cli.output import json_option, say
from sopilot.cli.performing import perform, show
from sopilot.cli.scene import Description
from sopilot.cli.sources import load_source, read_text
from sopilot.cli.stores import STORE
from sopilot.cli.workflow_folder import load_folder
from sopilot.cli.written_world import check_results, missing_results, scenario_for
from sopilot.diagnostics import UserMistake


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
@click.option(
    "--arm", metavar="ARM", help="Default: what the last `sopilot gate` of the model says, else pg."
)
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
        # A workflow folder's program is written by hand: there is no other representation of it.
        arm, why = (DEFAULT, "") if Path(source).is_dir() else checked_arm(model)
        if why:
            click.echo(why, err=True)
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


def pairs(option: str, written: tuple[str, ...]) -> dict[str, Any]:
    """``name=value``; a value that is not JSON is a text."""
    found: dict[str, Any] = {}
    for pair in written:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UserMistake(f"{option} takes NAME=VALUE, not `{pair}`")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def chosen_budgets(written: tuple[str, ...], *, deep: bool) -> dict[str, Any]:
    known = set(type(DEEP_BUDGETS).__dataclass_fields__)
    chosen: dict[str, Any] = (
        {"wall_seconds": DEEP_BUDGETS.wall_seconds, "user_turns": DEEP_BUDGETS.user_turns}
        if deep
        else {}
    )
    given = pairs("--budget", written)
    unknown = sorted(set(given) - known)
    if unknown:
        raise UserMistake(f"--budget: `{unknown[0]}` is none of {', '.join(sorted(known))}")
    return chosen | given


def read_results(path: str) -> dict[str, Any]:
    try:
        value = yaml.safe_load(read_text(Path(path)))
    except yaml.YAMLError as error:
        raise UserMistake(f"{path} is not YAML: {error}") from error
    if not isinstance(value, dict):
        raise UserMistake(f"{path} must map each action to its result")
    return value
