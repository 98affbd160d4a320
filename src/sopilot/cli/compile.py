"""``sopilot compile`` and ``show``: the programs of a source, and the texts that a model sees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from sopilot.cli.options import AS_JSON, GOAL, LANGUAGE, NEW_FOLDER, TOOLS, flag, option
from sopilot.cli.output import Exit, Output, progress
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
@option("-o,--output", "Write one YAML file per program into this folder.", type=NEW_FOLDER)
@GOAL
@TOOLS
@AS_JSON
def command(source: str, output: Path | None, goal: str | None, tools: str | None) -> Output:
    progress(f"compiling {source} …")
    started = time.perf_counter()
    units = compile_source(source, tools=tools, goal=goal)
    artifacts = [program_to_yaml(unit.program) for unit in units]
    seconds = time.perf_counter() - started
    written = write_programs(output, units, artifacts) if output else []
    summary = summarise(units, artifacts, seconds)
    if len(units) == 1 and output is None:
        return Output(summary | {"written": []}, [Lines(artifacts[0].rstrip())])
    rows = figure_rows(summary)
    if source == "sopbench:all":
        text = table([(k, v, PAPER.get(k, "")) for k, v in rows], ["", "this compile", "the paper"])
    else:
        text = table(rows, ["", "this compile"])
    files = [f"\n{len(written)} programs in {output}"] if written else []
    lines = [text, *files, "every program was accepted by the verifier"]
    return Output(summary | {"written": written}, lines)


@click.command(
    help=f"Show what a model sees of SOURCE.\n\n{SOURCE_HELP} A program file can be shown as "
    f"{', '.join(OF_PROGRAMS)}.\n\nFORM is one of: {', '.join((*FORMS, EXPLANATION))}. "
    f"`{EXPLANATION}` shows why each check is there."
)
@click.argument("source")
@option("--as FORM", "Form of the text.", "form", default="flat", show_default=True)
@GOAL
@LANGUAGE
@TOOLS
@flag("--check", "Prove that every form quotes the same sentences, byte for byte.")
@AS_JSON
def show(
    source: str,
    form: str,
    goal: str | None,
    language: str,
    tools: str | None,
    check: bool,
) -> Output:
    if check:
        result = correspondences(source, goal=goal, tools=tools)
        broken = Exit.if_any(any(item.mismatches for item in result.values()))
        return Output(correspondence_json(result), correspondence_lines(result), broken)
    if form != EXPLANATION:
        texts = shown(source, form, goal=goal, language=language, tools=tools)
        return Output(texts, _text_lines(texts))
    units = compile_source(source, tools=tools, goal=goal)
    explained = {unit.label: explain(unit) for unit in units}
    lines = [
        line
        for label, why in explained.items()
        for line in (Heading(label), *explanation_lines(why), "")
    ]
    return Output(explained, lines)


def _text_lines(texts: dict[str, Shown]) -> Iterator[str]:
    for label, text in texts.items():
        if len(texts) > 1:
            yield Heading(f"=== {label}")
        whole = text if isinstance(text, str) else "\n\n".join(map(str.rstrip, text.values()))
        yield Lines(whole.rstrip())
        if len(texts) > 1:
            yield ""
