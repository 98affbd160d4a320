"""Intervals for one proportion."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from sopilot.lab.stats._binomial import at_most
from sopilot.lab.stats._bisection import crossing
from sopilot.lab.stats._undefined import Interval, Undefined, require, require_open_share


def clopper_pearson(passed: int, trials: int, confidence: float = 0.95) -> Interval | Undefined:
    """The exact two-sided interval: it covers at least as often as it says."""
    _check(passed, trials, confidence)
    if trials == 0:
        return Undefined("no trials")
    tail = (1.0 - confidence) / 2.0
    # P(X >= passed) grows with the chance; the bound is where it reaches the tail.
    low = _bound(lambda chance: at_most(trials - passed, trials, 1.0 - chance) < tail)
    high = _bound(lambda chance: at_most(passed, trials, chance) > tail)
    return Interval(low, high)


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval | Undefined:
    """The score interval: right on average, a little short near 0 and 1."""
    _check(passed, trials, confidence)
    if trials == 0:
        return Undefined("no trials")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    share = passed / trials
    shrink = 1.0 + z * z / trials
    centre = (share + z * z / (2 * trials)) / shrink
    half = z * math.sqrt(share * (1.0 - share) / trials + z * z / (4 * trials * trials)) / shrink
    # Where none or all passed the bound is 0 or 1, and not what rounding makes of it.
    low = centre - half if passed else 0.0
    high = centre + half if passed < trials else 1.0
    return Interval(low, high)


def _check(passed: int, trials: int, confidence: float) -> None:
    require(
        0 <= passed <= trials, f"passed must lie between 0 and trials, not `{passed}` of `{trials}`"
    )
    require_open_share("confidence", confidence)


def _bound(left_of: Callable[[float], bool]) -> float:
    return sum(crossing(left_of, 0.0, 1.0)) / 2.0
