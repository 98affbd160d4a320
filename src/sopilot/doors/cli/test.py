"""``sopilot test``: the scenarios of a handbook, and what none of them reached."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.scenarios import (
    Coverage,
    ProgramCoverage,
    Scenario,
    ScenarioResult,
    coverage_of,
    read_scenarios,
    run_scenario,
)
from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.cli.sources import SCENARIOS, load_source, read_text
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.runtime.agent import Briefing, Progress
from sopilot.runtime.session import ProgramSet, export_trace, write_trace


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
@click.option("--complete", is_flag=True, help="Also fail when a step or branch was not reached.")
@json_option
def command(
    handbook: str,
    scenario_file: str | None,
    only: tuple[str, ...],
    watch: str | None,
    traces: Path | None,
    complete: bool,
    as_json: bool,
) -> None:
    """Run the scenarios of HANDBOOK through the machine with simulated tools.

    The reference executor follows the compiled procedures; predicates are judged by
    the handbook's verdicts, and by the scenario's `verdicts` where there is none.
    Exit 0 when every scenario passed, 1 when one failed, 2 on misuse.
    """
    loaded = load_source(handbook)
    path = Path(scenario_file) if scenario_file else Path(handbook).with_suffix(SCENARIOS)
    suite, findings = read_scenarios(_scenario_text(path), loaded, str(path))
    if suite is None:
        raise UserMistake(findings)
    for finding in findings:
        click.echo(str(finding), err=True)
    wanted = (*only, watch) if watch is not None else only
    chosen = _chosen(suite.scenarios, wanted, str(path))
    briefing = Briefing(loaded, {g: c.program for g, c in compile_handbook(loaded).items()})
    results = asyncio.run(_run(briefing, chosen, watching=watch is not None, traces=traces))
    coverage = _coverage(briefing, results)
    failed = [result for result in results if not result.passed]
    gaps = sum(len(one.gaps) for one in coverage) if not wanted else 0
    if as_json:
        print_json(_summary(loaded.name, results, [] if wanted else coverage))
    else:
        _tell(results, [] if wanted else coverage)
    if failed or (complete and gaps):
        raise SystemExit(1)


def _scenario_text(path: Path) -> str:
    if not path.exists():
        raise UserMistake(
            [
                Diagnostic(
                    "no-scenarios",
                    "there is no such scenario file",
                    Place(str(path)),
                    "name it with `--scenarios`, or see `sopilot new` for one to start from",
                )
            ]
        )
    return read_text(path)


def _chosen(scenarios: Sequence[Scenario], names: Sequence[str], source: str) -> Sequence[Scenario]:
    if not names:
        return scenarios
    known = {scenario.name: scenario for scenario in scenarios}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserMistake(
            [
                Diagnostic(
                    "unknown-scenario",
                    f"there is no scenario `{name}`",
                    Place(source),
                    did_you_mean(name, known),
                )
                for name in unknown
            ]
        )
    return [known[name] for name in dict.fromkeys(names)]


async def _run(
    briefing: Briefing, scenarios: Sequence[Scenario], *, watching: bool, traces: Path | None
) -> list[ScenarioResult]:
    store = MemoryStore()
    programs = ProgramSet.of(briefing.programs)
    results = []
    for scenario in scenarios:
        result = await run_scenario(
            scenario,
            briefing,
            store=store,
            programs=programs,
            watch=_Watcher() if watching else lambda progress: None,
        )
        results.append(result)
        if traces is not None:
            text = write_trace(await export_trace(store, result.session.session_id))
            _save(traces / f"{_file_name(scenario.name)}.jsonl", text)
    return results


def _file_name(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "scenario"


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"the trace cannot be written: {error.strerror}"
        raise UserMistake([Diagnostic("cannot-write", message, Place(str(path)))]) from error


def _coverage(briefing: Briefing, results: Sequence[ScenarioResult]) -> list[ProgramCoverage]:
    touched = {goal: Coverage() for goal in briefing.programs}
    for result in results:
        processes = {
            event.process: event.payload["goal"] for event in result.events if event.kind == "start"
        }
        for process, goal in processes.items():
            mine = [event for event in result.events if event.process == process]
            touched[goal].add(briefing.programs[goal], mine)
    return [
        coverage_of(goal, program, touched[goal]) for goal, program in briefing.programs.items()
    ]


def _summary(
    handbook: str, results: Sequence[ScenarioResult], coverage: Sequence[ProgramCoverage]
) -> dict[str, object]:
    passed = sum(result.passed for result in results)
    return {
        "handbook": handbook,
        "n": len(results),
        "passed": passed,
        "failed": len(results) - passed,
        "scenarios": [result.as_json() for result in results],
        "coverage": {one.goal: one.as_json() for one in coverage},
    }


def _tell(results: Sequence[ScenarioResult], coverage: Sequence[ProgramCoverage]) -> None:
    for result in results:
        word = "passed" if result.passed else click.style("FAILED", fg="red")
        say(f"{word}  {result.scenario.name}")
        for reason in result.reasons:
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
    passed = sum(result.passed for result in results)
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
                say("\n".join(f"  | {line}" for line in progress.slot.splitlines()))
            self._slot = progress.slot
            return
        say(f"{progress.kind:>9}  {progress.text}")
