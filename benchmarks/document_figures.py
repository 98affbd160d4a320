"""The figures that documents quote from the evidence: this table writes them and checks them.

`evidence.py` writes them after each campaign; a test fails where a document differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import table

ROOT = Path(__file__).resolve().parent.parent
_FIGURE = r"[+-]?\d[\d,]*(?:\.\d+)?"

FiguresOf = Callable[[str], Any]
"""The figures on record of a campaign or of a part of it."""


@dataclass(frozen=True)
class Quote:
    """A piece of a document in which each ``{}`` stands for a figure."""

    document: str
    piece: str
    figures: tuple[str, ...]

    def written(self, text: str) -> str:
        """The text with these figures in it. Line breaks in the piece don't count."""
        parts = (r"\s+".join(map(re.escape, part.split(" "))) for part in self.piece.split("{}"))
        pattern = _FIGURE.join(f"({part})" for part in parts)
        places = list(re.finditer(pattern, text))
        if len(places) != 1:
            raise ValueError(f"{self.document}: {len(places)} places like {self.piece!r}, not 1")
        first, *parts = places[0].groups()
        whole = first + "".join(map(str.__add__, self.figures, parts))
        return text[: places[0].start()] + whole + text[places[0].end() :]


@dataclass(frozen=True)
class Table:
    """A whole table of a document, found by its first line."""

    document: str
    lines: str

    def written(self, text: str) -> str:
        head = re.escape(self.lines.partition("\n")[0])
        new, count = re.subn(rf"{head}\n(\|.*\n?)*", lambda _: f"{self.lines}\n", text)
        if count != 1:
            raise ValueError(f"{self.document}: {count} tables like this, not 1: {head}")
        return new


def quotes(figures_of: FiguresOf) -> Iterator[Quote | Table]:
    yield from _tokens(figures_of)
    yield from _steps(figures_of)
    yield from _study(figures_of)
    yield from _qualification(figures_of)


def _tokens(figures_of: FiguresOf) -> Iterator[Quote]:
    page, tokens = "docs/concepts/views.md", figures_of("tokens/sopbench")
    bank = next(row for row in tokens["domains"] if row["domain"] == "bank")
    paper, pg, fused = tokens["paper"]["pg_to_flat"], bank["pg_to_flat"], bank["fused_to_flat"]
    yield Quote(
        page,
        "took {} times the prompt tokens and {} times the calls on Bank",
        (f"{paper['tokens']:.1f}", f"{paper['calls']:.1f}"),
    )
    yield Quote(page, "`pg` takes {} times the tokens", (f"{pg['tokens']:.1f}",))
    yield Quote(
        page,
        "and {} times the calls of `flat`. `fused` takes {} times the tokens",
        (f"{pg['calls']:.1f}", f"{fused['tokens']:.2f}"),
    )
    for row in tokens["domains"]:
        name = row["domain"].replace("_", " ").title().replace("Dmv", "DMV")
        pg, fused = row["pg_to_flat"], row["fused_to_flat"]
        figures = (
            str(row["tasks"]),
            f"{pg['tokens']:.2f}",
            f"{pg['calls']:.1f}",
            f"{row['pg_to_paper']['calls']:.2f}",
            f"{fused['tokens']:.2f}",
            f"{fused['calls']:.1f}",
            f"{fused['completion']:.2f}",
            f"{fused['price']:.2f}",
        )
        yield Quote("design/views.md", f"| {name} |" + " {} |" * len(figures), figures)
    growth = figures_of("tokens/growth")["largest_request_by_turns"]["fused"]
    yield Quote(
        "design/views.md",
        "{}, {} and {} tokens with the fold",
        tuple(f"{growth[turns]:,}" for turns in ("10", "100", "1000")),
    )


def _steps(figures_of: FiguresOf) -> Iterator[Quote]:
    walk = figures_of("steps/langgraph")
    micro = {name: f"{row['wall']:.0f}" for name, row in walk["microseconds"].items()}
    times = {name: f"{row['wall']:.1f}" for name, row in walk["ratios"].items()}
    for piece, figures in (
        (
            "in memory {} µs per step ({} times cheaper",
            (micro["memory"], times["memory to memory"]),
        ),
        ("NORMAL {} µs ({} times)", (micro["NORMAL"], times["NORMAL to NORMAL"])),
        (
            "FULL {} µs ({} times",
            (micro["FULL"], times["durable to its SQLite, both as shipped"]),
        ),
        ("commit took {} µs", (micro["bare commit"],)),
    ):
        yield Quote("design/stores.md", piece, figures)


def _study(figures_of: FiguresOf) -> Iterator[Quote]:
    ours = {row["what"]: row["ours"] for row in figures_of("study/claims")["rows"]}
    compiler = "design/compiler.md"
    median, largest = ours["Functions per artifact, median / maximum"].split(" / ")
    yield Quote(compiler, "| functions, median / max | {} / {} |", (median, largest))
    characters = ours["serialized length, median (range)"].split()[0]
    yield Quote(compiler, "| characters, median | {} |", (characters,))
    wording = figures_of("sopbench/wording")
    benchmark = "design/sopbench.md"
    yield Quote(benchmark, "{} of {} texts are", (str(wording["identical"]), str(wording["tasks"])))
    yield Quote(benchmark, "compares {} sentences", (f"{wording['sentences']:,}",))
    ratios = [row["cost_planned_over_counted"] for row in figures_of("study/planned-cost")["cells"]]
    yield Quote(
        "docs/research/sopbench.md",
        "between {} % below and {} % above the cost",
        (str(round(100 * (1 - min(ratios)))), str(round(100 * (max(ratios) - 1)))),
    )


def _qualification(figures_of: FiguresOf) -> Iterator[Quote | Table]:
    note, figures = "design/qualification.md", figures_of("qualification")
    yield Table(note, table(figures))
    rows = {row["class"]: row for row in figures["classes"]}

    def counts(kind: str, *answers: str) -> tuple[str, ...]:
        row = rows[kind]
        return (*(str(row["answers"].get(answer, 0)) for answer in answers), str(row["checks"]))

    for kind, answer in (
        ("harmed", "do not page"),
        ("lost", "do not page"),
        ("strong", "may page"),
        ("helped", "page"),
    ):
        yield Quote(note, f"- {kind}: *{answer}* in {{}} of {{}} checks", counts(kind, answer))
    yield Quote(
        note,
        "- neutral: *page* in {} and *may page* in {} of {} checks",
        counts("neutral", "page", "may page"),
    )
    prose = sum(row["representations"].get("prose", 0) for row in figures["subjects"])
    checks = sum(row["checks"] for row in figures["subjects"])
    yield Quote(note, "The representation was `prose` in {} of {}", (str(prose), str(checks)))


def write_figures(figures_of: FiguresOf) -> None:
    for quote in quotes(figures_of):
        page = ROOT / quote.document
        text = page.read_text("utf-8")
        if (new := quote.written(text)) != text:
            page.write_text(new, "utf-8")
            print(f"new figures: {quote.document}")
