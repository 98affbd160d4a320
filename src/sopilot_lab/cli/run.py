"""``sopilot lab run``."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sopilot.agent.result import Ending
from sopilot.agent.retries import Retries
from sopilot.cli.options import AS_JSON, FILE, LANGUAGE, NEW_FOLDER, flag, option
from sopilot.cli.output import Exit, Output, progress, say
from sopilot.cli.watch import interrupted
from sopilot.messages.errors import UserMistake
from sopilot.runner.options import chosen_budgets
from sopilot.runner.sources import FolderSource, open_source
from sopilot.tasks.task import Task
from sopilot_lab.cli.options import DOMAIN, PRICE, RUNNER, screen_option, shown
from sopilot_lab.experiments.entrants import Contestant, Party, Patience
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.experiments.selection import narrowed, select_tasks
from sopilot_lab.experiments.summary import summary_lines, whole_summary
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.tasks import OwnReference, own_references
from sopilot_lab.statistics.outcomes import KINDS


# Hidden options are for the table `[lab.run]` of the configuration file.
@click.command()
@DOMAIN
@option("--source", "Handbook or bundled example to run instead.")
@option("--goal", "Run only this goal.")
@option("--kind", "Run only tasks that should end this way.", type=click.Choice(KINDS))
@option("--tasks", "File of task references, one per line.", "listed", type=FILE)
@screen_option("Screened tasks to leave out.", default="none")
@option("--limit", "Number of tasks, stratified by class and goal.", type=int)
@shown("--arm", "View: how much of the SOP the model sees.", default="pg")
@shown("--model MODEL", "Model to run.", default="reference")
@shown(
    "--tools",
    "Tool list; `oracle` has only the needed tools.",
    type=click.Choice(["official", "full-state", "oracle"]),
    default="official",
)
@option(
    "-o,--output", "Folder for the runs. The same command resumes a sweep in it.", type=NEW_FOLDER
)
@shown("--run N", "Repetition number.", "number", type=click.IntRange(1), default=1)
@shown("--on", "Backend for workers.", type=click.Choice(["local", "ray"]), default="local")
@RUNNER
@option("--workers", "Processes. Default: one per core.", type=click.IntRange(min=1))
@option("--at-once", "Concurrent tasks per process.", type=click.IntRange(1), hidden=True)
@option("--user", "User model. Default: a scripted user.", default="default")
@LANGUAGE
@shown("--seed-hash", "Hash seed of SOPBench's simulator.", default=0, hidden=True)
@flag("--traces", "Keep the trace of every run.")
@option("--alias", "Recorded name of the model.", default="")
@shown("--attempts", "Attempts per request.", type=click.IntRange(1), default=5, hidden=True)
@shown("--redraws", "Retries of a broken run.", type=click.IntRange(0), default=2, hidden=True)
@shown(
    "--most-missing",
    "Stop if a larger share of tasks has no verdict.",
    type=click.FloatRange(0, 1),
    default=0.5,
    hidden=True,
)
@PRICE
@option("--served", "Model name that answers must carry; `any` accepts every name.", hidden=True)
@option("--key-variable", "Environment variable that holds the key.", hidden=True)
@option("--budget NAME=N", "Set a budget (repeatable).", multiple=True)
@AS_JSON
def run(
    domain: str, source: str | None, goal: str | None, kind: str | None, listed: Path | None,
    screen: str,
    limit: int | None, arm: str, model: str, tools: Any, output: Path | None, number: int,
    on: Any, runner: Any, workers: int | None, user: str, language: str, seed_hash: int,
    traces: bool, **value: Any,
) -> Output:  # fmt: skip
    """Run tasks and score them with SOPBench's official evaluator or a handbook's scenarios. The
    summary lists tasks without a verdict, and the reasons.

    MODEL is as for `sopilot run`, or null, refuse-always, call-everything, sloppy or
    inspect:PROVIDER/NAME. Budgets include temperature (or `none`), seed, reply_tokens,
    context_tokens and request_seconds.
    """
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
        language=language, run=number, own=own.values(),
        budgets=chosen_budgets(value["budget"]),
    )  # fmt: skip
    sweep_watcher = SweepWatcher(len(references))
    with tempfile.TemporaryDirectory(prefix="sopilot-bench-") as scratch:
        try:
            sweep = run_sweep(
                output or Path(scratch),
                configuration,
                references,
                Party(
                    who,
                    Contestant(user),
                    Patience(
                        replace(Retries(), attempts=value["attempts"]),
                        value["redraws"],
                        value["most_missing"],
                    ),
                    {str(each): task for each, task in own.items()},
                    keep_traces=traces,
                ),
                on=on,
                runner=runner,
                workers=1 if own else workers,
                at_once=value["at_once"],
                seen=sweep_watcher,
            )
        except KeyboardInterrupt:
            raise interrupted(sweep_watcher.judged, len(references), output) from None
        if upstream is not None:
            progress("\nlooking up what is reachable …")
        summary = whole_summary(sweep, upstream, tools)
    if output is None:
        summary["note"] = "records weren't kept: name a folder with -o"
    return Output(summary, summary_lines(summary), Exit.if_any(summary["missing"]))


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
