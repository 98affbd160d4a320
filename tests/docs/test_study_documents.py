"""docs/research/study.md: every row of the study's tables has a claim, every claim a status."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from math import log10
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from sopilot.cli.main import sopilot as cli

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "study"))

from claims import Claim, judge, p_as_printed  # noqa: E402
from measured import measured_claims  # noqa: E402
from printed import printed_claims  # noqa: E402

from evidence import CAMPAIGNS, STALE, figures_of  # noqa: E402

PAGE = ROOT / "docs" / "research" / "study.md"
PRESET = ROOT / "src" / "sopilot_lab" / "experiments" / "study" / "paper.yaml"
DOMAINS = ["Bank", "Hotel", "Library", "DMV", "Healthcare", "Market", "University"]
MODELS = ["DS-V4-Flash", "Q3.7-Plus", "Q3.6-A3B", "Q3.6-27B", "Q2.5-7B", "GPT-4o-mini"]
SPLITS = ["All", "Execute", "Refusal"]
# Typed from the study, not taken from the claims.
ROWS = {
    "tab:models": MODELS,
    "tab:official": [
        "o4-mini-high (FC)", "GPT-4o (FC)", "Qwen2.5-32B (ReAct)", "Qwen2.5-7B (FC)",
        "best", "the remaining fifteen",
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
        f"{model} {view}"
        for model in ("DS-V4", "Q3.7-Plus", "Q3.6-A3B", "Q3.6-27B", "Q2.5-7B", "4o-mini")
        for view in ("flat", "pg")
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
    "recomputed|reproduced by us|differs because .+|needs hosted models, not run here|"
    "needs files that the study keeps to itself|(stale|missing): run `python .+`"
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
    kept = figures_of("study/claims")["rows"]
    names = ("where", "what", "paper", "ours", "status")
    claimed = [[" ".join(str(each[name]).split()) for name in names] for each in kept]
    shown = [[*row[:4], row[-1]] for row in rows()]
    # `evidence.py` marks citations after the page was written.
    assert [[cell.replace(STALE, "") for cell in row] for row in shown] == claimed


def test_a_difference_without_a_reason_is_no_status() -> None:
    unexplained = Claim("w", "x", "1", lambda: "2")
    assert not judge(unexplained, checkout=False).explained
    assert judge(Claim("w", "x", "1", lambda: "2", because="of it"), checkout=False).explained


def commands(*begins: str) -> list[str]:
    """Each command of the page once."""
    shown = {row[4].strip("`") for row in rows()}
    return sorted(each for each in shown if each.startswith(begins))


def parse(words: list[str], tmp_path: Path) -> tuple[click.Command, click.Context]:
    """Let click read a command, its placeholders filled with files that exist."""
    filled = []
    for word in words:
        if word in ("RUNS", "OUTCOMES", "WEIGHTS"):
            (tmp_path / word).mkdir(exist_ok=True)
            word = str(tmp_path / word)
        if word == "paper.yaml" and "new" not in words:
            word = str(PRESET)
        filled.append(word)
    command: click.Command = cli
    context = click.Context(cli, info_name="sopilot")
    while isinstance(command, click.Group):
        name, command, filled = command.resolve_command(context, filled)
        assert command is not None
        context = click.Context(command, parent=context, info_name=name)
    return command, command.make_context(context.info_name, filled, parent=context.parent)


@pytest.mark.parametrize("command", commands("sopilot"))
def test_commands_parse(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    parse(command.split()[1:], tmp_path)


@pytest.mark.parametrize(
    "command", [each for each in commands("sopilot lab stats") if "OUT" not in each]
)
def test_statistics_print_the_figure_of_the_page(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli, [*command.split()[1:], "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    for _, what, _, ours, shown, _ in rows():
        if shown == f"`{command}`":
            assert _agrees(printed, what, ours), (what, ours, printed)


def _agrees(printed: dict[str, Any], what: str, ours: str) -> bool:
    if "bh" in what or "Benjamini" in what:
        return ours == f"{printed['rejected']} of {len(printed['contrasts'])}"
    if "wilson_low" in printed:
        return ours == f"{100 * printed['low']:.1f} %"
    p = float(printed["p_joint"] if "p_joint" in printed else printed["p"])
    shown = {p_as_printed(p), f"{p:.1e}", f"≈1e{log10(p):.0f}", "n.s." if p > 0.05 else "p < .05"}
    return ours in shown or ours == f"{printed['wins']}:{printed['losses']}"


@pytest.mark.parametrize("command", commands("python"))
def test_scripts_of_the_page_run(command: str) -> None:
    """What needs no checkout is computed; a campaign's own test starts its script."""
    _, script, *arguments = command.split()
    if script == "benchmarks/study":
        option, place = arguments
        assert option == "--only"
        judged = [judge(each, checkout=False) for each in printed_claims()
                  if each.where.startswith(place)]  # fmt: skip
        measured = [each for each in measured_claims() if each.where.startswith(place)]
        assert judged or measured
        assert all(each.explained for each in judged)
    elif script == "benchmarks/evidence.py":
        assert arguments[0] in CAMPAIGNS
    else:
        scripts = {ROOT / "benchmarks" / campaign.script for campaign in CAMPAIGNS.values()}
        assert ROOT / script in scripts


def test_stale_and_missing_evidence_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claim("w", "x", "0", lambda: "0", evidence="no-such-evidence")
    assert judge(claim, checkout=False).status.startswith("missing: run `python")
    monkeypatch.setattr("claims.stale", lambda name, sources: True)
    old = Claim("w", "x", "0", lambda: "0", evidence="compile/proposition-1")
    assert judge(old, checkout=False).status.startswith("stale: run `python")
