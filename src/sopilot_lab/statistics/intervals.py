"""Intervals of rates and differences: exact, by score, by resampled clusters.

A figure that doesn't exist is ``Undefined`` with its reason, never 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from sopilot.messages.errors import UserMistake

try:
    from scipy import optimize
    from scipy.stats import binom, binomtest, false_discovery_control
except ModuleNotFoundError as missing:
    raise UserMistake("statistics need SciPy: pip install 'sopilot[lab]'") from missing

__all__ = ["binom", "binomtest", "false_discovery_control", "optimize"]

SEED = 27
DRAWS = 10_000
Sums = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Undefined:
    """The figure does not exist for these data. Never stands for 0."""

    reason: str

    def __str__(self) -> str:
        return f"undefined ({self.reason})"


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


def require(holds: bool, message: str) -> None:
    if not holds:
        raise UserMistake(message)


def require_open_share(name: str, value: float) -> None:
    # Written so that a NaN, which compares false with everything, is refused too.
    require(0.0 < value < 1.0, f"{name} must lie strictly between 0 and 1, not `{value}`")


def require_pairs(wins: int, losses: int, pairs: int) -> None:
    require(
        wins >= 0 and losses >= 0 and wins + losses <= pairs,
        f"`{wins}` wins and `{losses}` losses do not fit into `{pairs}` pairs",
    )


def p_value(value: float) -> float:
    """Clip a computed p-value. One too small for a float is the smallest float, never 0."""
    return max(math.ulp(0.0), min(1.0, float(value)))


def clustered_interval(
    rows: Iterable[tuple[str, Sums]],
    statistic: Callable[[Sums], float | None],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Interval | Undefined:
    """Add up the rows of each cluster. Draw as many clusters as there are, with replacement, and
    apply ``statistic`` to the drawn sums (``None`` where it does not exist). Return the
    percentiles.

    Whole clusters are drawn, so that dependence inside one is kept.
    """
    require_open_share("confidence", confidence)
    require(draws > 0, f"draws must be positive, not `{draws}`")
    clusters: dict[str, Sums] = {}
    for name, row in rows:
        clusters[name] = _added([clusters[name], row]) if name in clusters else row
    units = [clusters[name] for name in sorted(clusters)]
    if len(units) < 2:
        return Undefined("resampling needs at least two units")
    generator = random.Random(seed)
    drawn = (statistic(_added(generator.choices(units, k=len(units)))) for _ in range(draws))
    values = sorted(value for value in drawn if value is not None)
    if not values:
        return Undefined("the statistic was undefined in every draw")
    lowest = int((1.0 - confidence) / 2.0 * len(values))
    return Interval(values[lowest], values[len(values) - 1 - lowest])


def _added(rows: Sequence[Sums]) -> Sums:
    return tuple(map(sum, zip(*rows, strict=True)))


def ratio(sums: Sums) -> float | None:
    """The statistic of rows (sum, count): a mean."""
    total, count = sums
    return total / count if count else None


def paired_difference(
    wins: int, losses: int, pairs: int, confidence: float = 0.95
) -> Interval | Undefined:
    """Tango's score interval for the difference of two paired proportions.

    Pairs count as independent. It is the inversion of the score test, so it
    neither leaves [-1, 1] nor collapses when there is no discordant pair.
    """
    require_pairs(wins, losses, pairs)
    require_open_share("confidence", confidence)
    if pairs == 0:
        return Undefined("no pairs")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    return Interval(-_upper(losses, wins, pairs, z), _upper(wins, losses, pairs, z))


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
    return Interval(float(bounds.low), float(bounds.high))
