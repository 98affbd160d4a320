"""The exact McNemar test and the pooled sign test: is a discordant pair a fair coin?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sopilot.lab.stats._binomial import as_p, at_most, fair_tail
from sopilot.lab.stats._undefined import require

_INTEGERS = 20_000


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
    """The exact two-sided p-value, computed in integers and rounded once
    (beyond 20,000 discordant pairs in floats).

    Without a discordant pair nothing could have come out differently: p is 1.
    """
    require(wins >= 0 and losses >= 0, f"wins and losses are counts, not `{wins}`:`{losses}`")
    trials, fewer = wins + losses, min(wins, losses)
    if trials > _INTEGERS:
        return max(math.ulp(0.0), min(1.0, 2.0 * at_most(fewer, trials, 0.5)))
    return as_p(2 * fair_tail(fewer, trials), 2**trials)


def pool(parts: Iterable[Discordance]) -> Discordance:
    return sum(parts, Discordance())


def sign_test(parts: Iterable[Discordance]) -> float:
    """The exact two-sided p-value of pooled discordant pairs.

    Right only where the parts are independent, that is, share no task; models
    that ran the same tasks belong in ``task_joint``.
    """
    whole = pool(parts)
    return mcnemar(whole.wins, whole.losses)
