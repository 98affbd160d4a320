"""What a claim of the study is, and how its status comes about.

The status is never written by hand: `ours` is computed, compared with the study's figure as it
prints it, and a difference without a reason is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sopilot.lab.stats import mcnemar

RECOMPUTED = "recomputed"
REPRODUCED = "reproduced by us"
HOSTED = "needs hosted models, not run here"
NO_CHECKOUT = "not computed: no SOPBench checkout"


@dataclass(frozen=True, slots=True)
class Claim:
    """``where`` is a label of the study and a row of it. ``kind`` is the status if both figures
    agree; ``because`` the reason if they do not. Without ``ours`` it needs hosted models."""

    where: str
    what: str
    paper: str
    ours: Callable[[], str] | None = None
    command: str = ""
    kind: str = RECOMPUTED
    because: str = ""
    needs_checkout: bool = False


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
        return Judged(claim, "–", HOSTED)
    if claim.needs_checkout and not checkout:
        return Judged(claim, "–", NO_CHECKOUT)
    ours = claim.ours()
    if ours == claim.paper:
        return Judged(claim, ours, claim.kind)
    return Judged(claim, ours, f"differs because {claim.because}" if claim.because else "differs")


def p_as_printed(p: float) -> str:
    """As the study's tables print it."""
    if p < 0.001:
        return "<.001"
    return f"{p:.3f}".lstrip("0") if p < 0.9995 else "1.000"


def discordant(where: str, what: str, pairs: str, p: str, because: str = "") -> Claim:
    """The p-value of discordant pairs that the study prints."""
    wins, losses = map(int, pairs.split(":"))
    return Claim(
        where,
        f"{what}: p of {pairs}",
        p,
        lambda: p_as_printed(mcnemar(wins, losses)),
        f"sopilot stats mcnemar {wins} {losses}",
        because=because,
    )


def hosted(where: str, what: str, paper: str, command: str = "sopilot bench report") -> Claim:
    """Measured on models that somebody has to pay for; ``command`` would measure it again."""
    return Claim(where, what, paper, command=command)
