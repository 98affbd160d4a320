"""``sopilot lab run``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sopilot.agent.providers import Retries
from sopilot.agent.result import Ending
from sopilot.cli.options import FILE, NEW_FOLDER
from sopilot.cli.output import give, json_option, progress, say
from sopilot.cli.watch import interrupted
from sopilot.messages.errors import UserMistake
from sopilot.models.open import MODEL_HELP
from sopilot.runner.options import sweep_budgets
from sopilot.runner.sources import FolderSource, open_source
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import Contestant, Patience
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.experiments.selection import KINDS, narrowed, select_tasks
from sopilot_lab.experiments.summary import summary_lines, whole_summary
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.tasks import OwnReference, own_references

_TERMS = (
    click.option(
        "--alias",
        default="",
        help="Name of the model in records and reports, in place of its address.",
    ),
    click.option("--temperature", help="Sampling temperature, or `none` to send none. Default: 0."),
    click.option(
        "--seed", type=int, help="Sampling seed to send with every request. Default: none."
    ),
    click.option(
        "--max-tokens", type=click.IntRange(1), help="Token limit of a reply. Default: none."
    ),
    click.option(
        "--context", type=click.IntRange(1), help="Token limit of a request. Default: 128000."
    ),
    click.option("--timeout", type=float, help="Seconds per request. Default: 600."),
    click.option(
        "--attempts",
        default=5,
        show_default=True,
        type=click.IntRange(1),
        help="Attempts per request.",
    ),
    click.option(
        "--redraws",
        default=2,
        show_default=True,
        type=click.IntRange(0),
        help="Retries of a run that the infrastructure broke.",
    ),
    click.option(
        "--most-missing",
        default=0.5,
        show_default=True,
        type=click.FloatRange(0, 1),
        help="Stop when more than this share of the tasks (ten at least) has no verdict.",
    ),
    click.option(
        "--price",
        type=(float, float),
        metavar="IN OUT",
        help="Price per million prompt and reply tokens.",
    ),
    click.option("--served", help="Model name that answers must carry; `any` accepts every name."),
    click.option("--key-variable", help="Environment variable that holds the key."),
    click.option(
        "--budget", multiple=True, metavar="NAME=N", help="Set another budget (repeatable)."
    ),
    click.option(
        "--at-once", type=click.IntRange(1), help="Tasks to run concurrently per process."
    ),
)


def terms(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a model's requests and limits."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


@click.command()
@click.option(
    "--domain",
    type=click.Choice([*DOMAINS, "all"]),
    default="all",
    show_default=True,
    help="Domain of SOPBench.",
)
@click.option(
    "--source",
    help="Handbook with scenarios, or a bundled example, to run in place of SOPBench.",
)
@click.option("--goal", help="Only this goal.")
@click.option("--kind", type=click.Choice(KINDS), help="Only tasks that should end this way.")
@click.option(
    "--tasks",
    "listed",
    type=FILE,
    help="File of task references, one per line (sopbench:bank/get_loan#3).",
)
@click.option(
    "--screen",
    type=click.Choice(list(SCREENS)),
    default="none",
    show_default=True,
    help="Execute tasks to leave out: `paper` leaves 819 tasks, `paper-bank` 821.",
)
@click.option("--limit", type=int, help="Number of tasks, stratified by class and goal.")
@click.option(
    "--arm", default="pg", show_default=True, help="View: what the model sees of the SOP."
)
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
    help="Tool list: without or with the reader of the whole database; `oracle` offers only "
    "the tools of the right answer.",
)
@click.option(
    "-o",
    "--output",
    type=NEW_FOLDER,
    help="Folder of this configuration's runs. An interrupted sweep resumes in it.",
)
@click.option("--run", "number", default=1, show_default=True, type=click.IntRange(1),
              help="Number of this repetition of the configuration.")  # fmt: skip
@click.option(
    "--on",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the workers run.",
)
@click.option(
    "--runner",
    type=click.Choice(["inspect", "plain"]),
    help="Runner of the tasks. Default: inspect if it is installed (extra `bench`).",
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Worker processes. Default: one per core."
)
@click.option(
    "--user",
    default="default",
    show_default=True,
    help="`default` for the scripted user, or a model's name.",
)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the scaffold.",
)
@click.option(
    "--seed-hash", type=int, default=0, show_default=True, help="Hash seed of SOPBench's simulator."
)
@click.option("--traces", is_flag=True, help="Keep the trace of every run.")
@terms
@json_option
def run(
    domain: str, source: str | None, goal: str | None, kind: str | None, listed: Path | None,
    screen: str,
    limit: int | None, arm: str, model: str, tools: Any, output: Path | None, number: int,
    on: Any, runner: Any, workers: int | None, user: str, language: str, seed_hash: int,
    traces: bool, as_json: bool, **value: Any,
) -> None:  # fmt: skip
    """Run tasks and score them. The official evaluator judges SOPBench's tasks, scenarios judge
    those of a handbook. Tasks without a verdict are listed with the reason."""
    who = Contestant(model, value["alias"], value["key_variable"], value["served"], value["price"])
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
        language=language, run=number, budgets=sweep_budgets(value), own=own.values(),
    )  # fmt: skip
    sweep_watcher = SweepWatcher(len(references))
    with tempfile.TemporaryDirectory(prefix="sopilot-bench-") as scratch:
        try:
            sweep = run_sweep(
                output or Path(scratch),
                configuration,
                references,
                contestant=who,
                user=Contestant(user),
                patience=patience(value),
                own={str(each): task for each, task in own.items()},
                on=on,
                runner=runner,
                workers=1 if own else workers,
                at_once=value["at_once"],
                keep_traces=traces,
                seen=sweep_watcher,
            )
        except KeyboardInterrupt:
            raise interrupted(sweep_watcher.judged, len(references), output) from None
        if upstream is not None:
            progress("\nlooking up what is reachable …")
        summary = whole_summary(sweep, upstream, tools)
    if output is None:
        summary["note"] = "records weren't kept: name a folder with -o"
    give(as_json, summary, summary_lines(summary))
    if summary["missing"]:
        sys.exit(1)


class SweepWatcher:
    """Reports broken runs at once and counts the judged ones."""

    def __init__(self, planned: int) -> None:
        self._planned = planned
        self.judged = 0

    def __call__(self, record: BenchRecord) -> None:
        self.judged += not record.discarded
        if record.discarded:
            progress("", same_line=True)
            say(f"broken ({record.fault or 'provider'}): {record.task}: {record.reason}", err=True)
        else:
            progress(f"{self.judged}/{self._planned} {record.task}", same_line=True)


def own_sweep_tasks(
    source: str, goal: str | None, language: str, *, kind: str | None, limit: int | None
) -> dict[OwnReference, Task]:
    opened = open_source(source)
    if isinstance(opened, FolderSource):
        raise UserMistake("the tools of a workflow folder are real: `lab run` can't use them")
    result = own_references(opened.tasks(goal=goal, language=language))
    chosen = narrowed(
        tuple(result),
        lambda each: result[each].expected is Ending.EXECUTED,
        kind=kind,
        limit=limit,
    )
    return {each: result[each] for each in chosen}


def patience(values: Mapping[str, Any]) -> Patience:
    return Patience(
        replace(Retries(), attempts=values["attempts"]), values["redraws"], values["most_missing"]
    )
