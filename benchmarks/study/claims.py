"""A claim of the study, and how its status comes about.

The status is never written by hand: `ours` is computed, compared with the study's figure as it
prints it, and a difference without a reason is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sopilot_lab.statistics.paired import mcnemar

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path.append(str(BENCHMARKS))

from depends import Sources  # noqa: E402
from evidence import figures_of, stale  # noqa: E402

RECOMPUTED = "recomputed"
REPRODUCED = "reproduced by us"
HOSTED = "needs hosted models, not run here"
PRIVATE = "needs files that the study keeps to itself"
NO_CHECKOUT = "not computed: no SOPBench checkout"
HOSTED_COMMAND = "sopilot lab study report paper.yaml"


@dataclass(frozen=True, slots=True)
class Claim:
    """``where`` is a label of the study and a row of it. ``kind`` is the status if both figures
    agree; ``because`` the reason if they do not. A claim without ``ours`` has ``kind`` for its
    status. ``evidence`` names the campaign whose figures ``ours`` reads."""

    where: str
    what: str
    paper: str
    ours: Callable[[], str] | None = None
    command: str = ""
    kind: str = RECOMPUTED
    because: str = ""
    needs_checkout: bool = False
    evidence: str = ""

    @property
    def shown_command(self) -> str:
        """The product's command, or the command that computes this part of the page."""
        return self.command or f"python benchmarks/study --only {self.where.partition(',')[0]}"


@dataclass(frozen=True, slots=True)
class Judged:
    claim: Claim
    ours: str
    status: str

    @property
    def explained(self) -> bool:
        return self.status != "differs"


def judge(claim: Claim, *, checkout: bool) -> Judged:
    if claim.ours is None:
        return Judged(claim, "–", claim.kind)
    if claim.needs_checkout and not checkout:
        return Judged(claim, "–", NO_CHECKOUT)
    if claim.evidence:
        again = f"run `python benchmarks/evidence.py {claim.evidence}`"
        if not figures_of(claim.evidence):
            return Judged(claim, "–", f"missing: {again}")
        if stale(claim.evidence, sources()):
            return Judged(claim, claim.ours(), f"stale: {again}")
    ours = claim.ours()
    if ours == claim.paper:
        return Judged(claim, ours, claim.kind)
    return Judged(claim, ours, f"differs because {claim.because}" if claim.because else "differs")


@cache
def sources() -> Sources:
    return Sources()


def p_as_printed(p: float) -> str:
    """A p-value as the study's tables print it."""
    if p < 0.001:
        return "<.001"
    return f"{p:.3f}".lstrip("0") if p < 0.9995 else "1.000"


def discordant(where: str, what: str, pairs: str, p: str) -> Claim:
    """The p-value of discordant pairs that the study prints."""
    wins, losses = map(int, pairs.split(":"))
    return Claim(
        where,
        f"{what}: p of {pairs}",
        p,
        lambda: p_as_printed(mcnemar(wins, losses)),
        f"sopilot lab stats mcnemar {wins} {losses}",
    )


def not_significant(where: str, what: str, pairs: str) -> Claim:
    wins, losses = map(int, pairs.split(":"))
    return Claim(
        where,
        f"{what}: {pairs} is not significant",
        "n.s.",
        lambda: "n.s." if mcnemar(wins, losses) > 0.05 else "p < .05",
        f"sopilot lab stats mcnemar {wins} {losses}",
    )


def hosted(where: str, what: str, paper: str, command: str = HOSTED_COMMAND) -> Claim:
    """Measured on models that somebody has to pay for; ``command`` would measure it again."""
    return Claim(where, what, paper, command=command, kind=HOSTED)


def private(where: str, what: str, paper: str) -> Claim:
    """Counted in files that the study does not publish."""
    return Claim(where, what, paper, command="–", kind=PRIVATE)
