"""``sopilot test``: the scenarios of a handbook, and what none of them reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.agent.result import nobody_watches
from sopilot.cli.options import NEW_FOLDER
from sopilot.cli.output import json_option, marked, print_json, say, tell
from sopilot.cli.watch import ScenarioWatcher
from sopilot.files.text import read_text
from sopilot.messages.errors import UserMistake
from sopilot.models.open import make_model
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.coverage import ProgramCoverage
from sopilot.tasks.scenarios import read_scenarios
from sopilot.tasks.testing import (
    Tested,
    coverage_lines,
    named_scenarios,
    reached,
    run_scenarios,
    summary,
)
from sopilot.values.text import counted


@click.command()
@click.argument("handbook")
@click.option(
    "--scenarios",
    "scenario_file",
    help="The scenario file. Default: HANDBOOK's name with `.scenarios.yaml`.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Run this scenario alone (repeatable).")
@click.option(
    "--watch", metavar="NAME", help="Run this scenario and show every frame and call of it."
)
@click.option(
    "--traces",
    type=NEW_FOLDER,
    help="Write the trace of every run into this folder, for `sopilot audit`.",
)
@click.option(
    "--model",
    default="reference",
    show_default=True,
    help="Who makes the moves under `pg`, as for `sopilot run`: a model is tested, not the book.",
)
@click.option("--complete", is_flag=True, help="Also fail when a step or branch was not reached.")
@json_option
def command(
    handbook: str,
    scenario_file: str | None,
    only: tuple[str, ...],
    watch: str | None,
    traces: Path | None,
    model: str,
    complete: bool,
    as_json: bool,
) -> None:
    """Run the scenarios of HANDBOOK through the machine with simulated tools.

    The reference executor follows the compiled procedures; predicates are judged by
    the handbook's verdicts, and by the scenario's `verdicts` where there is none.
    Exit 0 when every scenario passed, 1 when one failed, 2 on misuse.
    """
    source = open_source(handbook)
    cure = "name it with `--scenarios`, or see `sopilot new` for one to start from"
    path = source.existing_scenarios(scenario_file, cure)
    suite, findings = read_scenarios(read_text(path), source.handbook, str(path))
    if suite is None:
        raise UserMistake(findings)
    for finding in findings:
        say(str(finding), err=True)
    wanted = (*only, watch) if watch is not None else only
    chosen = named_scenarios(suite.scenarios, wanted, str(path))
    briefing = source.briefing()
    results = asyncio.run(
        run_scenarios(
            briefing,
            chosen,
            MemoryStore(),
            watcher=ScenarioWatcher if watch is not None else lambda: nobody_watches,
            player=lambda task: make_model(model, judge=task.reader, about={"task": task.key}),
            traces=traces,
        )
    )
    coverage = reached(briefing, results)
    failed = [result for _, result in results if not result.passed]
    gaps = sum(len(item.gaps) for item in coverage) if not wanted else 0
    if as_json:
        print_json(summary(source.handbook.name, results, [] if wanted else coverage))
    else:
        _tell(results, [] if wanted else coverage)
    if failed or (complete and gaps):
        raise SystemExit(1)


def _tell(results: Sequence[Tested], coverage: Sequence[ProgramCoverage]) -> None:
    for scenario, result in results:
        if result.passed:
            marked("passed", f" {scenario.name}")
        else:
            marked("FAILED", f" {scenario.name}", fg="red")
        for reason in (result.verdict or {}).get("reasons", ()):
            say(f"        {reason}")
    for item in coverage:
        tell(coverage_lines(item))
    passed = sum(result.passed is True for _, result in results)
    say(f"\n{counted(len(results), 'scenario')}: {passed} passed, {len(results) - passed} failed")
