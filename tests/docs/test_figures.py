"""Figures in documents are those of the evidence that they cite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from document_figures import Quote, Table, quotes
from evidence import figures_of

ROOT = Path(__file__).resolve().parents[2]


def told(document: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / document).read_text("utf-8"))


def ceilings() -> dict[tuple[str, str], int]:
    rows = figures_of("sopbench/reference")["sweeps"]
    return {(row["arm"], row["tools"]): row["pass"] for row in rows if row["model"] == "reference"}


@pytest.mark.parametrize("quote", list(quotes(figures_of)), ids=lambda quote: quote.document)
def test_a_document_has_the_figures_of_the_evidence(quote: Quote | Table) -> None:
    text = (ROOT / quote.document).read_text("utf-8")
    assert quote.written(text) == text, "run `python benchmarks/evidence.py --documents`"


def test_a_figure_that_differs_is_written_anew() -> None:
    quote = Quote("a.md", "took {} s and {} calls", ("1,250.5", "-3"))
    assert quote.written("It took 7 s\nand 12 calls.") == "It took 1,250.5 s\nand -3 calls."
    for text in ("It took long.", "took 1 s and 2 calls, took 3 s and 4 calls"):
        with pytest.raises(ValueError, match="like 'took"):
            quote.written(text)
    table = Table("a.md", "| x |\n|---|\n| 2 |")
    assert table.written("A\n\n| x |\n|---|\n| 1 |\n| 1 |\n\nB") == (
        "A\n\n| x |\n|---|\n| 2 |\n\nB"
    )


def test_the_ceilings_are_those_of_the_sweeps() -> None:
    found = ceilings()
    for document in ("design/sopbench.md", "docs/research/study.md"):
        text = told(document)
        for tools in ("official", "full-state"):
            passed = {count for (_, each), count in found.items() if each == tools}
            assert len(passed) == 1
            assert str(passed.pop()) in text
    views = {"pg", "pg-paper", "flat", "fused", "full-cursor", "flat-protocol"}
    assert {view for view, _ in found} == views


def test_what_a_document_cites_exists() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("design/*.md")]:
        for name in re.findall(r"evidence/([\w-]+)\.json", document.read_text("utf-8")):
            assert (ROOT / "evidence" / f"{name}.json").exists(), (document.name, name)
