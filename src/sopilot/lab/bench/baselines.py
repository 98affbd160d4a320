"""Official configurations recomputed on a subset, with the tool list that each had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sopilot.lab.bench._checkout import Checkout
from sopilot.lab.bench._recorded import configurations
from sopilot.lab.bench._tally import Tally, tally
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.screen import Screen
from sopilot.language.diagnostics.plain_text import table


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
    found = []
    for each in configurations(checkout, domain):
        verdicts = [
            one.verdict for one in each.verdicts() if screen(one.reference, one.should_succeed)
        ]
        missing = subset_size - len(verdicts)
        why = ""
        if not verdicts:
            why = "no verdict is stored in this copy"
        elif missing:
            why = f"{missing} tasks have no stored verdict"
        found.append(
            Baseline(
                domain, each.model, each.mode, each.tools, each.user, tally(verdicts), missing, why
            )
        )
    return sorted(
        found, key=lambda row: (not row.complete, -(row.pass_rate or 0.0), row.model, row.tools)
    )


def subset_size(scoring: dict[str, list[bool]], domain: str, screen: Screen) -> int:
    return sum(
        screen(TaskReference(domain, goal, index), should)
        for goal, answers in scoring.items()
        for index, should in enumerate(answers)
    )


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
