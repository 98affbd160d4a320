"""``sopilot bench run``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from sopilot.doors.cli.output import json_option, print_json, progress, say, table
from sopilot.lab.bench import DOMAINS, shared_upstream
from sopilot.lab.bench.reach_survey import reach_cache, survey
from sopilot.lab.bench.record import BenchRecord
from sopilot.lab.bench.summary import summarise
from sopilot.lab.bench.sweep import make_configuration, run_sweep, select_tasks


@click.command()
@click.option("--domain", type=click.Choice([*DOMAINS, "all"]), default="all", show_default=True)
@click.option("--goal", help="Only this goal of the domain.")
@click.option("--arm", default="pg", show_default=True, help="What the model sees of the SOP.")
@click.option(
    "--model",
    default="reference",
    show_default=True,
    help="reference, null, refuse-always, call-everything, inspect:PROVIDER/NAME, or a name that "
    "`sopilot run --model` takes.",
)
@click.option(
    "--tools",
    type=click.Choice(["official", "full-state"]),
    default="official",
    show_default=True,
    help="Without or with the reader of the whole database.",
)
@click.option("--limit", type=int, help="So many tasks, spread evenly over the selection.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of this configuration's runs. A sweep that was killed goes on in it.",
)
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
@json_option
def run(
    domain: str,
    goal: str | None,
    arm: str,
    model: str,
    tools: Any,
    limit: int | None,
    output: Path | None,
    on: Any,
    runner: Any,
    workers: int | None,
    user: str,
    language: str,
    seed_hash: int,
    traces: bool,
    as_json: bool,
) -> None:
    """Run SOPBench tasks and score them by the official evaluator alone."""
    upstream = shared_upstream(seed_hash)
    references = select_tasks(domain, upstream, goal=goal, limit=limit)
    configuration = make_configuration(
        upstream, arm=arm, model=model, tools=tools, user=user, language=language
    )
    done = 0

    def seen(record: BenchRecord) -> None:
        nonlocal done
        done += 1
        progress(f"{done}/{len(references)} {record.task}", same_line=True)

    with tempfile.TemporaryDirectory(prefix="sopilot-bench-") as scratch:
        sweep = run_sweep(
            output or Path(scratch),
            configuration,
            references,
            on=on,
            runner=runner,
            workers=workers,
            keep_traces=traces,
            seen=seen,
        )
        progress("\nlooking up what is reachable …")
        reach = survey(references, tools, upstream, cache=reach_cache())
        summary = summarise(sweep, reach)
        sweep.folder.write_summary(summary)
    if output is None:
        summary["note"] = "records were not kept: name a folder with -o"
    if as_json:
        print_json(summary)
    else:
        _say(summary)
    if summary["missing"]:
        sys.exit(1)


def _say(summary: dict[str, Any]) -> None:
    def share(part: int, whole: int) -> str:
        return f"{part}/{whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")

    execute, refuse = summary["execute"], summary["refuse"]
    proved = [e for e in summary["failures"] if not e["reachable"] and not e["search_cut"]]
    rows = [
        ("pass", share(summary["pass"], summary["n"])),
        ("of the reachable", share(summary["pass"], summary["reachable"])),
        ("execute", share(execute["pass"], execute["n"])),
        ("refuse", share(refuse["pass"], refuse["n"])),
        ("over-refusals", summary["over_refusal"]),
        ("under-refusals", summary["under_refusal"]),
        ("sequence only", summary["sequence_only"]),
        ("R2", "–" if summary["r2"] is None else f"{summary['r2']:.3f}"),
        ("runs broken and made again", summary["discarded"]),
        ("seconds", summary["seconds"]),
        ("tasks per second", summary["tasks_per_second"]),
        ("overhead, ms a task", summary["overhead_ms_per_task"]),
    ]
    say(
        table(rows, ["", f"{summary['configuration']['model']}, {summary['configuration']['arm']}"])
    )
    if "assumption" in summary:
        say(f"\n{summary['assumption']}")
    for each in summary["failures"]:
        state = "reachable" if each["reachable"] else "unreachable" if each in proved else "unknown"
        say(f"\nfailed ({state}): {each['task']}")
        say(f"  {each['proof'] or ', '.join(each['objections'])}")
    if proved:
        say(f"\n{len(proved)} of {len(summary['failures'])} failures cannot be avoided")
