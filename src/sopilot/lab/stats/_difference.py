"""The difference of two paired pass rates, with an interval."""

from __future__ import annotations

import math
from statistics import NormalDist

from sopilot.lab.stats._bisection import crossing
from sopilot.lab.stats._pairing import Pairs
from sopilot.lab.stats._undefined import Interval, Undefined, require, require_open_share
from sopilot.lab.stats.bootstrap import DRAWS, BootstrapInterval, Sums, bootstrap_interval
from sopilot.lab.stats.sign_flip import SEED


def paired_difference(
    wins: int, losses: int, pairs: int, confidence: float = 0.95
) -> Interval | Undefined:
    """Tango's score interval for the difference of two paired proportions.

    Pairs count as independent. It is the inversion of the score test, so it
    neither leaves [-1, 1] nor collapses when there is no discordant pair.
    """
    require(
        wins >= 0 and losses >= 0 and wins + losses <= pairs,
        f"`{wins}` wins and `{losses}` losses do not fit into `{pairs}` pairs",
    )
    require_open_share("confidence", confidence)
    if pairs == 0:
        return Undefined("no pairs")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    return Interval(-_upper(losses, wins, pairs, z), _upper(wins, losses, pairs, z))


def clustered_difference(
    pairs: Pairs, *, confidence: float = 0.95, draws: int = DRAWS, seed: int = SEED
) -> BootstrapInterval | Undefined:
    """The same difference when tasks of a goal hang together: whole goals are resampled."""
    sums: dict[str, tuple[int, int]] = {}
    for item in pairs.pairs:
        net, count = sums.get(item.cluster, (0, 0))
        sums[item.cluster] = (net + item.net, count + 1)
    return bootstrap_interval(
        list(sums.values()), _share, confidence=confidence, draws=draws, seed=seed
    )


def _share(sums: Sums) -> float:
    net, count = sums
    return net / count


def _upper(wins: int, losses: int, pairs: int, z: float) -> float:
    def below(difference: float) -> bool:
        return score(wins, losses, pairs, difference) > -z

    return sum(crossing(below, (wins - losses) / pairs, 1.0)) / 2.0


def score(wins: int, losses: int, pairs: int, difference: float) -> float:
    """The score statistic under a hypothetical difference, with the likeliest chance of
    a loss that agrees with it."""
    linear = -wins - losses + (2 * pairs - wins + losses) * difference
    constant = -losses * difference * (1.0 - difference)
    root = math.sqrt(max(0.0, linear * linear - 8.0 * pairs * constant))
    loss = (root - linear) / (4.0 * pairs)
    variance = pairs * (2.0 * loss + difference * (1.0 - difference))
    excess = wins - losses - pairs * difference
    if variance <= 0.0:
        return math.copysign(math.inf, excess) if excess else 0.0
    return excess / math.sqrt(variance)
