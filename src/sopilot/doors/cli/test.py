"""``sopilot test``: the scenarios of a handbook, and what none of them reached."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.text_files import read_text
from sopilot.desks.scenarios import (
    Coverage,
    ProgramCoverage,
    Scenario,
    coverage_of,
    read_scenarios,
)
from sopilot.desks.tasks import Conditions, Result, run_task, scenario_task
from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.sources import open_source
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.runtime.agent import ARMS, Briefing, Progress, Reference
from sopilot.runtime.session import ProgramSet, export_trace, write_trace

Tested = tuple[Scenario, Result]


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
    source = open_source(handbook)
    path = Path(scenario_file) if scenario_file else source.scenario_file
    suite, findings = read_scenarios(_scenario_text(path), source.handbook, str(path))
    if suite is None:
        raise UserMistake(findings)
    for finding in findings:
        click.echo(str(finding), err=True)
    wanted = (*only, watch) if watch is not None else only
    chosen = _chosen(suite.scenarios, wanted, str(path))
    briefing = source.briefing()
    results = asyncio.run(_run(briefing, chosen, watching=watch is not None, traces=traces))
    coverage = _coverage(briefing, results)
    failed = [result for _, result in results if not result.passed]
    gaps = sum(len(one.gaps) for one in coverage) if not wanted else 0
    if as_json:
        print_json(_summary(source.handbook.name, results, [] if wanted else coverage))
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
) -> list[Tested]:
    store = MemoryStore()
    programs = ProgramSet.of(briefing.programs)
    results = []
    for scenario in scenarios:
        task = scenario_task(scenario, briefing)
        watch = _Watcher() if watching else lambda progress: None
        conditions = Conditions(ARMS["pg"], Reference(task.reader), watch=watch)
        result = await run_task(task, task.open(), conditions, store=store, programs=programs)
        results.append((scenario, result))
        if traces is not None:
            text = write_trace(await export_trace(store, result.session_id))
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


def _coverage(briefing: Briefing, results: Sequence[Tested]) -> list[ProgramCoverage]:
    touched = {goal: Coverage() for goal in briefing.programs}
    for _, result in results:
        events = [sealed.event for sealed in result.events]
        processes = {one.process: one.payload["goal"] for one in events if one.kind == "start"}
        for process, goal in processes.items():
            mine = [event for event in events if event.process == process]
            touched[goal].add(briefing.programs[goal], mine)
    return [
        coverage_of(goal, program, touched[goal]) for goal, program in briefing.programs.items()
    ]


def _summary(
    handbook: str, results: Sequence[Tested], coverage: Sequence[ProgramCoverage]
) -> dict[str, object]:
    passed = sum(result.passed is True for _, result in results)
    return {
        "handbook": handbook,
        "n": len(results),
        "passed": passed,
        "failed": len(results) - passed,
        "scenarios": [_row(scenario, result) for scenario, result in results],
        "coverage": {one.goal: one.as_json() for one in coverage},
    }


def _row(scenario: Scenario, result: Result) -> dict[str, object]:
    verdict = result.verdict or {}
    return {
        "name": scenario.name,
        "goal": scenario.goal,
        "passed": result.passed is True,
        "ending": str(result.ending),
        "causes": verdict.get("causes", []),
        "calls": verdict.get("calls", []),
        "reasons": verdict.get("reasons", []),
        "session": result.session_id,
    }


def _tell(results: Sequence[Tested], coverage: Sequence[ProgramCoverage]) -> None:
    for scenario, result in results:
        word = "passed" if result.passed else click.style("FAILED", fg="red")
        say(f"{word}  {scenario.name}")
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
                say("\n".join(f"  | {line}" for line in progress.slot.splitlines()))
            self._slot = progress.slot
            return
        say(f"{progress.kind:>9}  {progress.text}")
