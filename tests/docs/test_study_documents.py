"""docs/study.md: every row of the study's tables has a claim, every claim a status."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "study"))

from claims import Claim, judge  # noqa: E402
from printed import printed_claims  # noqa: E402

PAGE = ROOT / "docs" / "study.md"
DOMAINS = ["Bank", "Hotel", "Library", "DMV", "Healthcare", "Market", "University"]
MODELS = ["DS-V4-Flash", "Q3.7-Plus", "Q3.6-A3B", "Q3.6-27B", "Q2.5-7B", "GPT-4o-mini"]
SPLITS = ["All", "Execute", "Refusal"]
# Typed from the study, not taken from the claims.
ROWS = {
    "tab:models": MODELS,
    "tab:official": [
        "o4-mini-high (FC)", "GPT-4o (FC)", "Qwen2.5-32B (ReAct)", "Qwen2.5-7B (FC)",
    ],
    "tab:p1": ["DS-V4-Flash", "Q2.5-7B"],
    "tab:matrix": [*DOMAINS, *(f"pooled {name}" for name in ("V4", "Plus", "27B", "7B"))],
    "tab:fullcursor": SPLITS,
    "fig:mech": ["panel a", "panel b", "panel c"],
    "tab:compiler-audit": [
        "Compiler source lines (nonblank/noncomment)", "Factorial/language emitters",
        "Production-loader validator", "Goal-specific hand mappings",
        "Hand-written stateful predicate templates", "Generated artifacts / unique goal entries",
        "Unique rule-function identifiers", "Functions per artifact, median / maximum",
        "Artifacts using a missing-recipe fallback",
    ],
    "tab:plus-details": [*DOMAINS, "Pooled"],
    "tab:fullcursor-domains": [*DOMAINS, "Pooled"],
    "tab:7b-fullcursor": SPLITS,
    "tab:balanced": [
        f"{model} {arm}"
        for model in ("DS-V4", "Q3.7-Plus", "Q3.6-A3B", "Q3.6-27B", "Q2.5-7B", "4o-mini")
        for arm in ("flat", "pg")
    ],
    "tab:goalcluster": [
        "V4 Bank", "V4 seven-domain", "V4 Bank+Hotel", "Plus seven-domain", "27B six-domain",
        "7B six-domain", "GPT-4o-mini Bank", "Plus Bank",
    ],
    "tab:tokens": ["offtext", "flat", "pg"],
    "tab:defects": [
        "Bank cancel_credit_card", "Bank pay_bill_with_credit_card", "Bank open_account",
        "Library add_book", "DMV update_test_status",
    ],
}  # fmt: skip
STATUS = re.compile(
    "recomputed|reproduced by us|differs because .+|needs hosted models, not run here"
)


def rows() -> list[list[str]]:
    begin = PAGE.read_text("utf-8").partition("<!-- python benchmarks/study --write -->")[2]
    lines = [line for line in begin.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_row_of_the_studys_tables_has_a_status() -> None:
    found = defaultdict(set)
    for where, *_, status in rows():
        assert STATUS.fullmatch(status), (where, status)
        table, _, row = where.partition(", ")
        found[table].add(row)
    for table, wanted in ROWS.items():
        assert found[table] == set(wanted), table


def test_figures_that_the_study_prints_agree_with_each_other() -> None:
    """Computed again here, and written so on the page."""
    page = {(row[0], row[1]): row for row in rows()}
    computed = 0
    for claim in printed_claims():
        judged = judge(claim, checkout=False)
        assert judged.explained, (claim.where, claim.what, claim.paper, judged.ours)
        row = page[claim.where, claim.what]
        assert (row[2], row[3], row[5]) == (claim.paper, judged.ours, judged.status)
        computed += claim.ours is not None
    assert computed > 60


def test_the_page_and_the_evidence_are_of_one_run() -> None:
    kept = json.loads((ROOT / "evidence" / "study-claims.json").read_text("utf-8"))["rows"]
    names = ("where", "what", "paper", "ours", "status")
    claimed = [[" ".join(str(one[name]).split()) for name in names] for one in kept]
    assert [[*row[:4], row[-1]] for row in rows()] == claimed


def test_a_difference_without_a_reason_is_no_status() -> None:
    unexplained = Claim("w", "x", "1", lambda: "2")
    assert not judge(unexplained, checkout=False).explained
    assert judge(Claim("w", "x", "1", lambda: "2", because="of it"), checkout=False).explained


@pytest.mark.parametrize("command", sorted({row[4] for row in rows() if row[4].startswith("`")}))
def test_commands_exist(command: str) -> None:
    words = command.strip("`").split()
    if words[0] == "python":
        assert (ROOT / words[1]).exists()
        return
    from sopilot.doors.cli.bench import COMMANDS
    from sopilot.doors.cli.stats import command as stats

    if words[1] == "bench":
        assert words[2] in COMMANDS
    elif words[1] == "stats":
        assert words[2] in stats.commands
