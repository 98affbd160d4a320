"""The paper's Figures 1 and 2, drawn from a compiled task and a run of it.

    python benchmarks/artifact_figures.py FOLDER [--task sopbench:bank/apply_credit_card#0]

Compiles the task, lets the reference executor run it under `pg-paper`, and writes overview.svg
and artifact.svg (and PDFs, with the extra `figures`) as wide as two columns. The texts are
SOPBench's: they are read from the checkout and stand in no file of this repository.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import textwrap
from collections.abc import Sequence
from pathlib import Path

from sopbench_runs import Bench, MeteredRun
from sopilot.program.model import Kind, Program
from sopilot.views.catalogue import VIEWS
from sopilot.views.frame import render_function
from sopilot.views.program_text import render_flat
from sopilot.web.pages import Drawing
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import task_references
from sopilot_lab.sopbench.source import load_task

WIDTH, GAP, LINE = 754.0, 14.0, 11.5
SHOWN = ("start", "call", "domain_call", "domain_result", "return", "reuse", "complete", "fail")
"""Events that move the stack or are evidence."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", default="sopbench:bank/apply_credit_card#0")
    arguments = parser.parse_args()
    upstream = shared_upstream()
    (reference,) = task_references(arguments.task, upstream=upstream)
    task = load_task(reference, upstream)
    program = ProgramShelf("official", upstream).program(task).program
    run = asyncio.run(Bench(upstream, "official").run(reference, VIEWS["pg-paper"]))
    official = upstream.official_text(task.domain, task.goal, task.index).system
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in {
        "overview": overview(program, run, len(official)),
        "artifact": artifact(program, run),
    }.items():
        (arguments.folder / f"{name}.svg").write_text(drawing.as_file(), "utf-8")
        if importlib.util.find_spec("cairosvg") is not None:
            (arguments.folder / f"{name}.pdf").write_bytes(drawing.as_pdf())


def artifact(program: Program, run: MeteredRun) -> Drawing:
    """Process frame, a rule with its recipe, and the stack transitions of the run."""
    process = next(each for each in program.functions.values() if each.kind is Kind.PROCESS)
    rules = [each for each in program.functions.values() if each.kind is not Kind.PROCESS]
    columns = [("Active frame: the process", render_function(process, program).splitlines())]
    if rules:
        shown = max(rules, key=lambda each: (each.kind is Kind.RULE, len(each.steps)))
        text = render_function(shown, program).splitlines()
        columns.append(("Its rule, returning evidence", text))
    columns.append(("Audit trail of a run", list(transitions(run))))
    return boxes("A compiled task and its run", columns)


def overview(program: Program, run: MeteredRun, official: int) -> Drawing:
    sizes = [len(render_function(each, program)) for each in program.functions.values()]
    kinds = [str(each.kind) for each in program.functions.values()]
    counted = [f"{kind}: {kinds.count(kind)}" for kind in dict.fromkeys(kinds)]
    events = [each.event.kind for each in run.events]
    columns = [
        (
            "(1) Compile, without a model",
            [f"official text: {official:,} characters", "becomes a program of two layers:",
             *(f"  {each}" for each in counted), "",
             *(f"{each.kind} {name}" for name, each in program.functions.items())],
        ),
        (
            "(2) Page the active frame",
            [f"whole program: {len(render_flat(program).text):,} characters",
             f"a frame: {sum(sizes) / len(sizes):,.0f} on average, {max(sizes):,} at most", "",
             "one tool, pg_program_step:",
             *(f"  {kind}: {events.count(kind)}" for kind in ("start", "call", "return",
                                                              "complete", "fail")
               if kind in events)],
        ),
        (
            "(3) Audit every transition",
            [f"{len(run.events)} events, {len(run.calls)} domain calls",
             "verdicts, each with its evidence:",
             *(f"  {name}: {'true' if holds else 'false'}" for name, holds in run.verdicts), "",
             f"findings: {len(run.findings)}",
             f"official evaluator: {'passed' if run.passed else 'failed'}"],
        ),
    ]  # fmt: skip
    return boxes("Overview", columns)


def transitions(run: MeteredRun) -> list[str]:
    lines, depth = [], 0
    for each in run.events:
        kind, payload = each.event.kind, each.event.payload
        if kind not in SHOWN:
            continue
        name = next((str(payload[key]) for key in ("function", "action", "tool", "name", "goal")
                     if payload.get(key)), "")  # fmt: skip
        depth -= kind == "return"
        text = f"{'  ' * max(depth, 0)}{kind} {name}"
        if kind == "return" and "bound" in payload:
            bound = payload["bound"]
            cited = ", ".join(f"#{number}" for number in bound.get("evidence") or ())
            text += f" → {str(bound.get('holds')).lower()}" + (f" [{cited}]" if cited else "")
        if kind == "domain_result":
            text += f" #{each.event.seq}" if hasattr(each.event, "seq") else ""
        depth += kind == "call"
        lines.append(text)
    return lines


def wrap(line: str, letters: int) -> list[str]:
    """The line in pieces that begin where it does, and two letters further from the second on. A
    name is whole if it fits; a call breaks behind its bracket."""
    indent = " " * (len(line) - len(line.lstrip()))
    breakable = line.strip().replace("(", "(\N{ZERO WIDTH SPACE} ")
    pieces = textwrap.wrap(
        breakable, letters, initial_indent=indent, subsequent_indent=f"{indent}  "
    )
    return [piece.replace("(\N{ZERO WIDTH SPACE} ", "(").replace("\N{ZERO WIDTH SPACE}", "")
            for piece in pieces] or [""]  # fmt: skip


def boxes(title: str, columns: Sequence[tuple[str, Sequence[str]]]) -> Drawing:
    """Columns of text in frames, with arrows from each to the next."""
    drawing = Drawing(title, WIDTH)
    width = (WIDTH - GAP * (len(columns) - 1)) / len(columns)
    letters = int((width - 12) / 5.5)
    wrapped = [[part for line in lines for part in wrap(line, letters)] for _, lines in columns]
    drawing.height = 30 + LINE * max(map(len, wrapped)) + 8
    for place, ((head, _), lines) in enumerate(zip(columns, wrapped, strict=True)):
        left = place * (width + GAP)
        drawing.text(left + 2, 13, head, size=12, bold=True)
        drawing.add("rect", x=left + 0.5, y=20, width=width - 1, height=drawing.height - 21,
                    fill="none", stroke="currentColor", rx=3)  # fmt: skip
        for number, line in enumerate(lines):
            drawing.text(left + 6, 34 + LINE * number, line, size=9, fixed=True)
        if place:
            y = drawing.height / 2
            drawing.add("line", x1=left - GAP, x2=left - 2, y1=y, y2=y, stroke="currentColor")
            points = f"{left - 6},{y - 3} {left},{y} {left - 6},{y + 3}"
            drawing.add("polygon", points=points, fill="currentColor")
    return drawing


if __name__ == "__main__":
    main()
