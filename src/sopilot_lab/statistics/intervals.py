"""The difference of two paired pass rates, with an interval.

Intervals for one proportion.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from sopilot_lab.statistics.binomial import binomtest, optimize
from sopilot_lab.statistics.bootstrap import DRAWS, BootstrapInterval, Sums, bootstrap_interval
from sopilot_lab.statistics.clustered import SEED
from sopilot_lab.statistics.paired import Pairs
from sopilot_lab.statistics.undefined import Interval, Undefined, require, require_open_share


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
    units = [sums[goal] for goal in sorted(sums)]
    return bootstrap_interval(units, _share, confidence=confidence, draws=draws, seed=seed)


def _share(sums: Sums) -> float:
    net, count = sums
    return net / count


def _upper(wins: int, losses: int, pairs: int, z: float) -> float:
    if wins == pairs:
        return 1.0

    def excess(difference: float) -> float:
        return max(-2.0 * z, score(wins, losses, pairs, difference)) + z

    return float(optimize.brentq(excess, (wins - losses) / pairs, 1.0, xtol=1e-14))


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


def clopper_pearson(passed: int, trials: int, confidence: float = 0.95) -> Interval | Undefined:
    """The exact two-sided interval: it covers at least as often as it says."""
    return _proportion(passed, trials, confidence, "exact")


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval | Undefined:
    """The score interval: right on average, a little short near 0 and 1."""
    return _proportion(passed, trials, confidence, "wilson")


def _proportion(passed: int, trials: int, confidence: float, method: str) -> Interval | Undefined:
    require(
        0 <= passed <= trials, f"passed must lie between 0 and trials, not `{passed}` of `{trials}`"
    )
    require_open_share("confidence", confidence)
    if trials == 0:
        return Undefined("no trials")
    bounds = binomtest(passed, trials).proportion_ci(confidence, method)
    # Where none or all passed the bound is 0 or 1, and not what rounding makes of it.
    low = float(bounds.low) if passed else 0.0
    return Interval(low, float(bounds.high) if passed < trials else 1.0)
