"""``sopilot bench run``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import FILE, NEW_FOLDER
from sopilot.cli.output import give, json_option, progress
from sopilot.cli.watch import interrupted
from sopilot.models.open import MODEL_HELP
from sopilot.runner.options import sweep_budgets
from sopilot.tasks.task import Task
from sopilot_lab.cli.sweep_tasks import own_sweep_tasks, patience
from sopilot_lab.cli.watch import SweepWatcher
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.selection import KINDS, select_tasks
from sopilot_lab.experiments.summary import summary_lines, whole_summary
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.screen import SCREENS

_TERMS = (
    click.option(
        "--alias", default="", help="What records and reports call the model: never its address."
    ),
    click.option("--temperature", help="A number, or `none`: not sent. Default: 0."),
    click.option("--seed", type=int, help="Sent with every request. Default: not sent."),
    click.option("--max-tokens", type=click.IntRange(1), help="Of a reply. Default: not sent."),
    click.option(
        "--context", type=click.IntRange(1), help="Most tokens of a request. Default: 128000."
    ),
    click.option("--timeout", type=float, help="Seconds for a request. Default: 600."),
    click.option(
        "--attempts", default=5, show_default=True, type=click.IntRange(1), help="Of a request."
    ),
    click.option(
        "--redraws",
        default=2,
        show_default=True,
        type=click.IntRange(0),
        help="How often a run that the infrastructure broke is made again.",
    ),
    click.option(
        "--most-missing",
        default=0.5,
        show_default=True,
        type=click.FloatRange(0, 1),
        help="Stop when more than this share of the tasks (of ten, at least) stays unjudged.",
    ),
    click.option(
        "--price", type=(float, float), metavar="IN OUT", help="Per million prompt, reply tokens."
    ),
    click.option("--served", help="The model that answers must name; `any`: not compared."),
    click.option("--key-variable", help="The environment variable that holds the key."),
    click.option("--budget", multiple=True, metavar="NAME=N", help="Another budget, by name."),
    click.option("--at-once", type=click.IntRange(1), help="Tasks at a time in a process."),
)


def terms(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say on which terms a model runs."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="all", show_default=True)
@click.option(
    "--source",
    help="A handbook of yours with its scenarios, or a bundled desk, in place of SOPBench.",
)
@click.option("--goal", help="Only this goal.")
@click.option("--kind", type=click.Choice(KINDS), help="Only tasks that should end so.")
@click.option(
    "--tasks",
    "listed",
    type=FILE,
    help="A file of references, one a line (sopbench:bank/get_loan#3).",
)
@click.option(
    "--screen",
    type=click.Choice(list(SCREENS)),
    default="none",
    show_default=True,
    help="Leave out execute tasks as the study did: `paper` leaves 819 tasks, `paper-bank` 821.",
)
@click.option("--limit", type=int, help="So many tasks, stratified by class and goal.")
@click.option("--arm", default="pg", show_default=True, help="What the model sees of the SOP.")
@click.option(
    "--model",
    default="reference",
    show_default=True,
    metavar="MODEL",
    help="null, refuse-always, call-everything, sloppy, inspect:PROVIDER/NAME, or as for "
    f"`sopilot run`: {MODEL_HELP}",
)
@click.option(
    "--tools",
    type=click.Choice(["official", "full-state", "oracle"]),
    default="official",
    show_default=True,
    help="Without or with the reader of the whole database; `oracle`: the right answer's tools.",
)
@click.option(
    "-o",
    "--output",
    type=NEW_FOLDER,
    help="The folder of this configuration's runs. A sweep that was killed goes on in it.",
)
@click.option("--run", "number", default=1, show_default=True, type=click.IntRange(1),
              help="Which repetition of the configuration this is.")  # fmt: skip
@click.option("--on", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option(
    "--runner",
    type=click.Choice(["inspect", "plain"]),
    help="Default: inspect where it is installed (extra `bench`).",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes. Default: one a core.")
@click.option("--user", default="default", show_default=True, help="default, or a model's name.")
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--seed-hash", type=int, default=0, show_default=True, help="The hash seed.")
@click.option("--traces", is_flag=True, help="Keep every run's trace file in the folder.")
@terms
@json_option
def run(
    domain: str, source: str | None, goal: str | None, kind: str | None, listed: Path | None,
    screen: str,
    limit: int | None, arm: str, model: str, tools: Any, output: Path | None, number: int,
    on: Any, runner: Any, workers: int | None, user: str, language: str, seed_hash: int,
    traces: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Run tasks and score them: SOPBench's by the official evaluator alone, those of a handbook
    by its scenarios. What is missing in the end is named, with the reason."""
    who = Contestant(model, given["alias"], given["key_variable"], given["served"], given["price"])
    upstream = None if source is not None else shared_upstream(seed_hash)
    own: dict[Any, Task] = {}
    if upstream is None:
        own = own_sweep_tasks(str(source), goal, language, kind=kind, limit=limit)
        references: tuple[Any, ...] = tuple(own)
    else:
        screened = SCREENS[screen]
        references = select_tasks(
            domain, upstream, goal=goal, kind=kind, limit=limit, listed=listed, screen=screened
        )
    configuration = make_configuration(
        upstream, arm=arm, model=who.label, tools=tools, user=Contestant(user).label,
        language=language, run=number, budgets=sweep_budgets(given), own=own.values(),
    )  # fmt: skip
    told = SweepWatcher(len(references))
    with tempfile.TemporaryDirectory(prefix="sopilot-bench-") as scratch:
        try:
            sweep = run_sweep(
                output or Path(scratch),
                configuration,
                references,
                contestant=who,
                user=Contestant(user),
                patience=patience(given),
                own={str(each): task for each, task in own.items()},
                on=on,
                runner=runner,
                workers=1 if own else workers,
                at_once=given["at_once"],
                keep_traces=traces,
                seen=told,
            )
        except KeyboardInterrupt:
            raise interrupted(told.judged, len(references), output) from None
        if upstream is not None:
            progress("\nlooking up what is reachable …")
        summary = whole_summary(sweep, upstream, tools)
    if output is None:
        summary["note"] = "records were not kept: name a folder with -o"
    give(as_json, summary, summary_lines(summary))
    if summary["missing"]:
        sys.exit(1)
