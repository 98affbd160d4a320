"""The exact McNemar test and the pooled sign test: is a discordant pair a fair coin?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from sopilot.stats.binomial import fair_tail
from sopilot.stats.undefined import require


@dataclass(frozen=True, slots=True)
class Discordance:
    """Pairs that only one side passed: ``wins`` the first side, ``losses`` the second."""

    wins: int = 0
    losses: int = 0

    @property
    def total(self) -> int:
        return self.wins + self.losses

    @property
    def net(self) -> int:
        return self.wins - self.losses

    def __add__(self, other: Discordance) -> Discordance:
        return Discordance(self.wins + other.wins, self.losses + other.losses)

    def __sub__(self, other: Discordance) -> Discordance:
        return Discordance(self.wins - other.wins, self.losses - other.losses)


def mcnemar(wins: int, losses: int) -> float:
    """The exact two-sided p-value, computed in integers and rounded once.

    Without a discordant pair nothing could have come out differently: p is 1.
    """
    require(wins >= 0 and losses >= 0, f"wins and losses are counts, not `{wins}`:`{losses}`")
    trials = wins + losses
    return min(1.0, float(Fraction(2 * fair_tail(min(wins, losses), trials), 2**trials)))


def pool(parts: Iterable[Discordance]) -> Discordance:
    return sum(parts, Discordance())


def sign_test(parts: Iterable[Discordance]) -> float:
    """The exact two-sided p-value of pooled discordant pairs.

    Right only where the parts are independent, that is, share no task; models
    that ran the same tasks belong in ``task_joint``.
    """
    whole = pool(parts)
    return mcnemar(whole.wins, whole.losses)
