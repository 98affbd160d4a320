"""``sopilot compile`` and ``show``: the programs of a source, and the texts that a model sees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from sopilot.cli.options import GOAL, LANGUAGE, NEW_FOLDER, TOOLS, json_option
from sopilot.cli.output import Exit, give, heading, print_json, progress, say, tell
from sopilot.program.codec import program_to_yaml
from sopilot.runner.compile_figures import PAPER, figure_rows, summarise, write_programs
from sopilot.runner.explain import (
    FORMS,
    OF_PROGRAMS,
    Shown,
    correspondence_json,
    correspondence_lines,
    correspondences,
    explain,
    explanation_lines,
    shown,
)
from sopilot.runner.sources import SOURCE_HELP, compile_source
from sopilot.values.text import Heading, Lines, table

EXPLANATION = "explanation"


@click.command(help=f"Compile SOURCE into verified programs.\n\n{SOURCE_HELP}")
@click.argument("source")
@click.option(
    "-o", "--output", type=NEW_FOLDER, help="Write one YAML file per program into this folder."
)
@GOAL
@TOOLS
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
    if len(units) == 1 and output is None and not as_json:
        say(artifacts[0].rstrip())
        return
    summary = summarise(units, artifacts, seconds)
    rows = figure_rows(summary)
    if source == "sopbench:all":
        text = table([(k, v, PAPER.get(k, "")) for k, v in rows], ["", "this compile", "the paper"])
    else:
        text = table(rows, ["", "this compile"])
    files = [f"\n{len(written)} programs in {output}"] if written else []
    lines = [text, *files, "every program was accepted by the verifier"]
    give(as_json, summary | {"written": written}, lines)


@click.command(
    help=f"Show what a model would see of SOURCE.\n\n{SOURCE_HELP} A program file is shown as "
    f"{', '.join(OF_PROGRAMS)}.\n\nFORM is one of: {', '.join((*FORMS, EXPLANATION))}. "
    f"`{EXPLANATION}` shows why each check is there."
)
@click.argument("source")
@click.option(
    "--as", "form", default="flat", show_default=True, metavar="FORM", help="Form of the text."
)
@GOAL
@click.option("--function", metavar="NAME", help="With --as frame: only this function.")
@LANGUAGE
@TOOLS
@click.option(
    "--check", is_flag=True, help="Prove that every form quotes the same sentences, byte for byte."
)
@json_option
def show(
    source: str,
    form: str,
    goal: str | None,
    function: str | None,
    language: str,
    tools: str | None,
    check: bool,
    as_json: bool,
) -> None:
    if check:
        result = correspondences(source, goal=goal, tools=tools)
        give(as_json, correspondence_json(result), correspondence_lines(result))
        broken = any(item.mismatches for item in result.values())
        raise SystemExit(Exit.FINDINGS if broken else Exit.DONE)
    if form != EXPLANATION:
        texts = shown(source, form, goal=goal, function=function, language=language, tools=tools)
        give(as_json, texts, _text_lines(texts))
        return
    units = compile_source(source, tools=tools, goal=goal)
    explained = {unit.label: explain(unit) for unit in units}
    if as_json:
        print_json(explained)
        return
    for label, why in explained.items():
        heading(label)
        tell(explanation_lines(why))
        say()


def _text_lines(texts: dict[str, Shown]) -> Iterator[str]:
    for label, text in texts.items():
        if len(texts) > 1:
            yield Heading(f"=== {label}")
        whole = text if isinstance(text, str) else "\n\n".join(map(str.rstrip, text.values()))
        yield Lines(whole.rstrip())
        if len(texts) > 1:
            yield ""
