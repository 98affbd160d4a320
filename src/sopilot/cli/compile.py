"""``sopilot compile``: handbooks to programs."""

from __future__ import annotations

import time
from pathlib import Path

import click

from sopilot.cli.options import NEW_FOLDER
from sopilot.cli.output import json_option, print_json, progress, say
from sopilot.program.codec import program_to_yaml
from sopilot.runner.compile_figures import PAPER, figure_rows, summarise, write_programs
from sopilot.runner.sources import SOURCE_HELP, TOOL_LISTS, compile_source
from sopilot.values.text import table


@click.command(help=f"Compile SOURCE into verified programs.\n\n{SOURCE_HELP}")
@click.argument("source")
@click.option(
    "-o", "--output", type=NEW_FOLDER, help="Write one YAML file a program into this folder."
)
@click.option("--goal", help="Only this procedure.")
@click.option(
    "--tools",
    type=click.Choice(TOOL_LISTS),
    help="The tool list: without (`official`) or with (`full-state`) full-state readers. "
    "Default: what the handbook offers; `official` for SOPBench.",
)
@json_option
def command(
    source: str, output: Path | None, goal: str | None, tools: str | None, as_json: bool
) -> None:
    progress(f"compiling {source} …")
    started = time.perf_counter()
    units = compile_source(source, tools=tools, goal=goal)
    artifacts = [program_to_yaml(unit.program) for unit in units]
    seconds = time.perf_counter() - started
    written = write_programs(output, units, artifacts) if output else []
    summary = summarise(units, artifacts, seconds)
    if as_json:
        print_json(summary | {"written": written})
        return
    if len(units) == 1 and output is None:
        say(artifacts[0].rstrip())
        return
    rows = figure_rows(summary)
    if source == "sopbench:all":
        say(table([(k, v, PAPER.get(k, "")) for k, v in rows], ["", "this compile", "the paper"]))
    else:
        say(table(rows, ["", "this compile"]))
    if written:
        say(f"\n{len(written)} programs in {output}")
    say("every program was accepted by the verifier")
