"""Official configurations recomputed on a subset, with the tool list that each had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sopilot.values.text import table
from sopilot_lab.sopbench.checkout import Checkout
from sopilot_lab.sopbench.recorded import Tally, configurations, tally
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference
from sopilot_lab.sopbench.screen import Screen


@dataclass(frozen=True, slots=True)
class Baseline:
    """``missing`` tasks of the subset have no stored verdict; ``why`` says what is absent."""

    domain: str
    model: str
    mode: str
    tools: str
    user: str
    tally: Tally
    missing: int
    why: str = ""

    @property
    def complete(self) -> bool:
        return self.missing == 0

    @property
    def pass_rate(self) -> float | None:
        return self.tally.passed / self.tally.n if self.tally.n else None

    @property
    def refusal_rate(self) -> float | None:
        return self.tally.refuse_passed / self.tally.refuse if self.tally.refuse else None

    def as_json(self) -> dict[str, Any]:
        row = asdict(self)
        return row | {"pass_rate": self.pass_rate, "refusal_rate": self.refusal_rate}


def recompute(
    checkout: Checkout, domain: str, screen: Screen, *, subset_size: int
) -> list[Baseline]:
    """Best first; incomplete recordings last. ``subset_size`` is what a whole one has."""
    results = []
    for each in configurations(checkout, domain):
        verdicts = [
            verdict.verdict
            for verdict in each.verdicts()
            if screen(verdict.reference, verdict.should_succeed)
        ]
        missing = subset_size - len(verdicts)
        why = ""
        if not verdicts:
            why = "no verdict is stored in this copy"
        elif missing:
            why = f"{missing} tasks have no stored verdict"
        results.append(
            Baseline(
                domain, each.model, each.mode, each.tools, each.user, tally(verdicts), missing, why
            )
        )
    return sorted(
        results, key=lambda row: (not row.complete, -(row.pass_rate or 0.0), row.model, row.tools)
    )


def subset_size(scoring: dict[str, list[bool]], domain: str, screen: Screen) -> int:
    return sum(
        screen(TaskReference(domain, goal, index), should)
        for goal, answers in scoring.items()
        for index, should in enumerate(answers)
    )


def leaderboard(checkout: Checkout) -> dict[str, dict[str, float]]:
    """Model → domain → pass rate in percent, as SOPBench publishes them in its README.

    The leaderboard scores all tasks and has no classes; it stores no verdicts to recompute.
    """
    page = checkout.path / "README.md"
    rows = [
        [cell.strip(" *_") for cell in line.strip().strip("|").split("|")]
        for line in (page.read_text("utf-8").splitlines() if page.exists() else ())
        if line.startswith("|")
    ]
    heads = [row for row in rows if {"Bank", "DMV"} <= set(row)]
    if not heads:
        return {}
    domains = {
        place: domain
        for place, name in enumerate(heads[0])
        for domain in DOMAINS
        if domain.endswith(name.lower().replace(" ", "_")) and name
    }
    scored = [row for row in rows if len(row) == len(heads[0]) and _is_number(row[-1])]
    return {row[0]: {domain: float(row[at]) for at, domain in domains.items()} for row in scored}


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def leaderboard_lines(rows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    shown = [(model, *(f"{row[domain]:.1f}" for domain in row)) for model, row in rows.items()]
    yield table(shown, ["model", *next(iter(rows.values()))])


def baseline_lines(rows: Sequence[Baseline]) -> Iterator[str]:
    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    shown = [
        (
            row.domain,
            row.model,
            row.mode,
            row.tools,
            row.user,
            row.tally.n,
            percent(row.pass_rate),
            percent(row.refusal_rate),
            row.why,
        )
        for row in rows
    ]
    header = ["domain", "model", "mode", "tools", "user", "n", "pass %", "refusal %", ""]
    yield table(shown, header)
