"""The compiler-effort audit: what had to be written by hand, counted."""

from __future__ import annotations

import io
import statistics
import tokenize
from pathlib import Path

import sopilot
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Kind
from sopilot_lab.experiments.report.table import Table
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import load_tasks

PACKAGES = {
    "Compiler": ("sopilot/compiler",),
    "Emitters (frames, prose, official wording, two languages)": ("sopilot/views",),
    "Program: codec, verifier, printer": ("sopilot/program",),
    "SOPBench as a source of handbooks": (
        "sopilot_lab/sopbench/source.py",
        "sopilot_lab/sopbench/reference.py",
    ),
}


def compiler_effort(upstream: Upstream | None) -> Table:
    table = Table(
        "compiler-effort",
        "Compiler effort",
        ["quantity", "count"],
        method="source lines: all (without blank lines, comments and docstrings)",
    )
    root = Path(sopilot.__file__).parents[1]
    for title, places in PACKAGES.items():
        total, code = 0, 0
        for each in _sources(root, places):
            lines = source_lines(each.read_text("utf-8"))
            total, code = total + lines[0], code + lines[1]
        table.rows.append([f"{title}, source lines", f"{total:,} ({code:,})"])
    if upstream is None:
        table.rows.append(["Programs", table.lacks("no SOPBench checkout")])
        return table
    shelf = ProgramShelf("official", upstream)
    programs = [
        (task, shelf.program(task).program)
        for task in load_tasks("sopbench:all", upstream=upstream)
    ]
    functions = [len(program.functions) for _, program in programs]
    sizes = [len(program_to_yaml(program)) for _, program in programs]
    named = {
        (task.domain, function.predicate)
        for task, program in programs
        for function in program.functions.values()
        if function.predicate
    }
    gates = {
        function.predicate
        for _, program in programs
        for function in program.functions.values()
        if function.kind is Kind.GATE
    }
    fallbacks = sum(
        any("missing recipe" in function.notes for function in program.functions.values())
        for _, program in programs
    )
    recipes = "/".join(str(len(upstream.metadata(domain)["recipes"])) for domain in DOMAINS)
    goals = len({(task.domain, task.goal) for task, _ in programs})
    listed = ", ".join(sorted(str(each) for each in gates))
    spread = f"{statistics.median(functions):g} / {max(functions)}"
    range_ = f"{statistics.median(sizes):,.0f} ({min(sizes):,}–{max(sizes):,})"
    table.rows += [
        ["Goals named in those sources", str(_goals_named(root, upstream))],
        ["Stateful gates, one shared template", f"{len(gates)} ({listed})"],
        ["Programs / goals", f"{len(programs)} / {goals}"],
        ["Rules (domain, predicate)", str(len(named))],
        ["Functions a program, median / maximum", spread],
        ["Characters a program, median (range)", range_],
        ["Programs with a missing recipe", str(fallbacks)],
        [f"Recipes in the source ({', '.join(DOMAINS)})", recipes],
    ]
    return table


def _sources(root: Path, places: tuple[str, ...]) -> list[Path]:
    paths = [root / place for place in places]
    return [each for path in paths for each in (sorted(path.rglob("*.py")) or [path])]


def _goals_named(root: Path, upstream: Upstream) -> int:
    """Goals that any of the sources mentions as a string: hand mappings would have to."""
    text = "".join(
        each.read_text("utf-8") for places in PACKAGES.values() for each in _sources(root, places)
    )
    goals = {goal for domain in DOMAINS for goal in upstream.tasks(domain)}
    return sum(f'"{goal}"' in text or f"'{goal}'" in text for goal in goals)


def source_lines(text: str) -> tuple[int, int]:
    """All lines, and those that hold code: a docstring is a string that stands alone."""
    code: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER, tokenize.ENCODING)  # fmt: skip
    begins_statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            begins_statement = True
            continue
        if token.type in skipped:
            continue
        if not (token.type == tokenize.STRING and begins_statement):
            code.update(range(token.start[0], token.end[0] + 1))
        begins_statement = False
    return len(text.splitlines()), len(code)
