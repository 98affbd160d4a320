"""The power of a paired design: exact power of the exact McNemar test.

``discordance`` is the expected share of pairs that only one side passes and
``effect`` the difference of the pass rates, so that a pair is a win with
probability ``(discordance + effect) / 2``. The number of discordant pairs is
random; power sums over it. Nothing here uses a normal approximation.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial

import numpy as np

from sopilot_lab.statistics.intervals import Undefined, binom, optimize, require, require_open_share

_LIMIT = 20_000


def mcnemar_power(tasks: int, *, discordance: float, effect: float, alpha: float = 0.05) -> float:
    """The probability that the two-sided test at ``alpha`` rejects."""
    require(
        0.0 < discordance <= 1.0, f"discordance must lie above 0 and up to 1, not `{discordance}`"
    )
    require(
        abs(effect) <= discordance,
        f"an effect of `{effect}` needs at least that much discordance, not `{discordance}`",
    )
    require_open_share("alpha", alpha)
    require(tasks >= 0, f"tasks is a count, not `{tasks}`")
    pairs = np.arange(tasks + 1)
    # The largest count on the smaller side at which the test rejects, or -1 where it never does.
    count = binom.ppf(alpha / 2.0, pairs, 0.5)
    critical = np.where(binom.cdf(count, pairs, 0.5) <= alpha / 2.0, count, count - 1)
    lean = effect / discordance
    rejects = sum(binom.cdf(critical, pairs, (1.0 + side * lean) / 2.0) for side in (1, -1))
    return min(1.0, float(np.sum(binom.pmf(pairs, tasks, discordance) * rejects)))


def minimum_detectable_effect(
    tasks: int, *, discordance: float, alpha: float = 0.05, power: float = 0.8
) -> float | Undefined:
    """The smallest difference of pass rates that the test finds with this power."""
    _require_power(power, alpha)
    power_of = partial(mcnemar_power, tasks, discordance=discordance, alpha=alpha)
    best = power_of(effect=discordance)
    if best < power:
        return Undefined(
            f"with {tasks} tasks power is {best:.3f} even if every discordant pair is a win"
        )

    def excess(effect: float) -> float:
        return power_of(effect=effect) - power

    return float(optimize.brentq(excess, 0.0, discordance, xtol=1e-14))


def tasks_needed(
    *, discordance: float, effect: float, alpha: float = 0.05, power: float = 0.8
) -> int | Undefined:
    """The least number of tasks with this power, such that one task fewer has less.

    Power of a discrete test climbs with small steps back, so a slightly smaller
    number can happen to reach it as well.
    """
    _require_power(power, alpha)
    power_of = partial(mcnemar_power, discordance=discordance, effect=effect, alpha=alpha)
    high = 1
    while power_of(high) < power:
        if effect == 0.0:
            return Undefined("an effect of 0 cannot be detected")
        if high >= _LIMIT:
            return Undefined(f"more than {_LIMIT} tasks")
        high = min(_LIMIT, 2 * high)
    low = high // 2 + 1
    return low + bisect_left(range(low, high), True, key=lambda tasks: power_of(tasks) >= power)


def _require_power(power: float, alpha: float) -> None:
    require_open_share("power", power)
    require(power > alpha, f"power `{power}` must be above alpha `{alpha}`")
