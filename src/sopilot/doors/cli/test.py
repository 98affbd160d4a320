"""``sopilot test``: the scenarios of a handbook, and what none of them reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import make_model
from sopilot.adapters.text_files import read_text
from sopilot.desks.scenarios import ProgramCoverage, read_scenarios
from sopilot.desks.tasks.testing import Tested, named_scenarios, reached, run_scenarios, summary
from sopilot.doors.cli.output import heading, json_option, marked, print_json, say
from sopilot.doors.sources import open_source
from sopilot.language.diagnostics import Place, UserMistake, mistake
from sopilot.runtime.agent import Progress
from sopilot.runtime.agent.progress import nobody_watches


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
    type=click.Path(file_okay=False, path_type=Path),
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
    path = Path(scenario_file) if scenario_file else source.scenario_file
    suite, findings = read_scenarios(_scenario_text(path), source.handbook, str(path))
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
            watcher=_Watcher if watch is not None else lambda: nobody_watches,
            player=lambda task: make_model(model, judge=task.reader, about={"task": task.key}),
            traces=traces,
        )
    )
    coverage = reached(briefing, results)
    failed = [result for _, result in results if not result.passed]
    gaps = sum(len(one.gaps) for one in coverage) if not wanted else 0
    if as_json:
        print_json(summary(source.handbook.name, results, [] if wanted else coverage))
    else:
        _tell(results, [] if wanted else coverage)
    if failed or (complete and gaps):
        raise SystemExit(1)


def _scenario_text(path: Path) -> str:
    if not path.exists():
        raise mistake(
            "no-scenarios",
            "there is no such scenario file",
            Place(str(path)),
            "name it with `--scenarios`, or see `sopilot new` for one to start from",
        )
    return read_text(path)


def _tell(results: Sequence[Tested], coverage: Sequence[ProgramCoverage]) -> None:
    for scenario, result in results:
        if result.passed:
            marked("passed", f" {scenario.name}")
        else:
            marked("FAILED", f" {scenario.name}", fg="red")
        for reason in (result.verdict or {}).get("reasons", ()):
            say(f"        {reason}")
    for one in coverage:
        if one.steps_reached == 0:
            say(f"\n{one.goal}: no scenario")
            continue
        say(
            f"\n{one.goal}: {one.steps_reached} of {one.steps} steps, "
            f"{one.branches_reached} of {one.branches} branches"
        )
        for gap in one.gaps:
            say(f"  {gap}")
    passed = sum(result.passed is True for _, result in results)
    noun = "scenario" if len(results) == 1 else "scenarios"
    say(f"\n{len(results)} {noun}: {passed} passed, {len(results) - passed} failed")


class _Watcher:
    """Shows a run to a person: each frame once, then what was said and done."""

    def __init__(self) -> None:
        self._slot = ""

    def __call__(self, progress: Progress) -> None:
        if progress.kind == "request":
            if progress.slot and progress.slot != self._slot:
                heading("\nthe model sees")
                say("\n".join(f"  | {line}" for line in progress.slot.split("\n")))
            self._slot = progress.slot
            return
        say(f"{progress.kind:>9}  {progress.text}")
