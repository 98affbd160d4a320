"""``sopilot chat``: a person plays the user."""

from __future__ import annotations

from typing import Any

import click

from sopilot.cli.output import say, warn
from sopilot.cli.run_and_audit import TRUST, allow_code, default_view, perform, show
from sopilot.cli.stores import STORE
from sopilot.models.open import MODEL_HELP
from sopilot.runner.default_view import VIEW_HELP
from sopilot.runner.options import RunOptions, read_results, run_folder, who_answers
from sopilot.runner.sources import FolderSource, open_source

_PATIENCE = {"wall_seconds": 86_400.0, "user_turns": 100}


@click.command(
    help="Talk to an agent that follows SOURCE. An empty line ends the dialog.\n\n"
    f"MODEL is {MODEL_HELP}"
)
@click.argument("source")
@click.option("--goal", help="Only this procedure.")
@click.option("--task", help="The simulator of this task of a desk, or of this scenario.")
@click.option("--model", default="reference", show_default=True, metavar="MODEL")
@click.option("--view", metavar="VIEW", help=VIEW_HELP)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--results", type=click.Path(), help="YAML: what each tool returns.")
@click.option("--approve", "approvers", multiple=True, metavar="ROLE", help="Approves at once.")
@click.option("--frames", is_flag=True, help="Show what the model is shown.")
@TRUST
@STORE
def command(
    source: str,
    task: str | None,
    view: str | None,
    results: str | None,
    frames: bool,
    trust: bool,
    store_spec: str | None,
    **value: Any,
) -> None:
    opened = open_source(source, out=run_folder(source, task, None))
    if value["model"] == "reference":
        say('The reference executor understands values as `name: "value"`, one a line or message.')
        if value["goal"] is None and len(opened.handbook.procedures) > 1:
            say(f"It asks for the `goal`, one of: {', '.join(opened.handbook.procedures)}.")
    allow_code(opened, trust=trust)
    options = RunOptions(
        source=source,
        task=task,
        view=view or default_view(value["model"], opened),
        person=True,
        results=read_results(results) if results else None,
        budgets=_PATIENCE,
        out=str(opened.out) if isinstance(opened, FolderSource) else None,
        **value,
    )
    warn(who_answers(options, opened))
    done = perform(options, store_spec, source=opened, frames=frames)
    show(done, as_json=False, served=opened.handbook)
    raise SystemExit(0 if done.good else 1)
