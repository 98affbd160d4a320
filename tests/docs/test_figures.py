"""Figures in documents are those of the evidence that they cite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evidence import figures_of

ROOT = Path(__file__).resolve().parents[2]
VIEWS = "docs/concepts/views.md"


def told(document: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / document).read_text("utf-8"))


def domains() -> dict[str, Any]:
    return {one["domain"]: one for one in figures_of("tokens/sopbench")["domains"]}


def ceilings() -> dict[tuple[str, str], int]:
    rows = figures_of("sopbench/reference")["sweeps"]
    return {(row["arm"], row["tools"]): row["pass"] for row in rows if row["model"] == "reference"}


def sentences() -> list[tuple[str, str]]:
    """Document → a piece of it, with the evidence's figures put in."""
    bank = domains()["bank"]
    pg, fused, paper = (
        bank["pg_to_flat"],
        bank["fused_to_flat"],
        figures_of("tokens/sopbench")["paper"],
    )
    walk = figures_of("steps/langgraph")
    micro = {name: one["wall"] for name, one in walk["microseconds"].items()}
    times = {name: one["wall"] for name, one in walk["ratios"].items()}
    growth = figures_of("tokens/growth")["largest_request_by_turns"]
    wording = figures_of("sopbench/wording")
    ours = {one["what"]: one["ours"] for one in figures_of("study/claims")["rows"]}
    found = [
        ("design/compiler.md",
         f"| functions, median / max | {ours['Functions per artifact, median / maximum']} |"),
        ("design/compiler.md",
         f"| characters, median | {ours['serialized length, median (range)'].split()[0]} |"),
        (VIEWS, f"took {paper['pg_to_flat']['tokens']:.1f} times the prompt tokens and "
                          f"{paper['pg_to_flat']['calls']:.1f} times the calls on Bank"),
        (VIEWS, f"takes {pg['tokens']:.1f} times the tokens"),
        (VIEWS, f"and {pg['calls']:.1f} times the calls there under `pg`, and "
                          f"{fused['tokens']:.2f} times the tokens"),
        ("design/stores.md", f"in memory {micro['memory']:.0f} µs a step "
                               f"({times['memory to memory']:.1f} times cheaper"),
        ("design/stores.md", f"NORMAL {micro['NORMAL']:.0f} µs "
                               f"({times['NORMAL to NORMAL']:.1f} times)"),
        ("design/stores.md", f"FULL {micro['FULL']:.0f} µs "
         f"({times['durable to its SQLite, both as shipped']:.1f} times"),
        ("design/stores.md", f"commit took {micro['bare commit']:.0f} µs"),
        ("design/views.md", f"{growth['fused']['10']:,}, {growth['fused']['100']:,} and "
                            f"{growth['fused']['1000']:,} tokens with the fold"),
        ("design/sopbench.md", f"{wording['identical']} of {wording['tasks']}"),
        ("design/sopbench.md", f"{wording['sentences']:,} sentences"),
    ]  # fmt: skip
    ratios = [row["cost_planned_over_counted"] for row in figures_of("study/planned-cost")["cells"]]
    below, above = round(100 * (1 - min(ratios))), round(100 * (max(ratios) - 1))
    found.append(
        ("docs/research/sopbench.md", f"between {below} % below and {above} % above the cost")
    )
    for name, one in domains().items():
        row = " | ".join(
            [
                name.replace("_", " ").title().replace("Dmv", "DMV"),
                str(one["tasks"]),
                f"{one['pg_to_flat']['tokens']:.2f}",
                f"{one['pg_to_flat']['calls']:.1f}",
                f"{one['pg_to_paper']['calls']:.2f}",
                f"{one['fused_to_flat']['tokens']:.2f}",
                f"{one['fused_to_flat']['calls']:.1f}",
                f"{one['fused_to_flat']['completion']:.2f}",
                f"{one['fused_to_flat']['price']:.2f}",
            ]
        )
        found.append(("design/views.md", f"| {row} |"))
    return found


@pytest.mark.parametrize(("document", "sentence"), sentences())
def test_a_document_tells_the_figure_of_its_evidence(document: str, sentence: str) -> None:
    assert sentence in told(document)


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
