"""What a paired design can see: exact power of the exact McNemar test.

``discordance`` is the expected share of pairs that only one side passes and
``effect`` the difference of the pass rates, so that a pair is a win with
probability ``(discordance + effect) / 2``. The number of discordant pairs is
random; power sums over it. Nothing here uses a normal approximation.
"""

from __future__ import annotations

from fractions import Fraction

from sopilot_lab.statistics.binomial import at_most, crossing, probability
from sopilot_lab.statistics.undefined import Undefined, require, require_open_share

_LIMIT = 20_000


_NEGLIGIBLE = 1e-18


def critical_values(most: int, alpha: float) -> list[int]:
    """For every number of discordant pairs up to ``most``: the largest count on the
    smaller side at which the test rejects, or -1 where it never does."""
    level = Fraction(alpha) / 2
    found = [-1]
    # `tail` is the number of fair sequences of `pairs` with at most `count` wins and
    # `term` the number with exactly `count + 1`; both follow Pascal's triangle.
    count, tail, term = -1, 0, 1
    for pairs in range(1, most + 1):
        edge = term * (count + 1) // (pairs - count - 1) if count >= 0 else 0
        tail = 2 * tail - edge
        term = term + edge
        while (tail + term) * level.denominator <= level.numerator << pairs:
            tail += term
            count += 1
            term = term * (pairs - count) // (count + 1)
        found.append(count)
    return found


def mcnemar_power(tasks: int, *, discordance: float, effect: float, alpha: float = 0.05) -> float:
    """The probability that the two-sided test at ``alpha`` rejects."""
    _check(discordance, effect, alpha)
    require(tasks >= 0, f"tasks is a count, not `{tasks}`")
    return _power(tasks, discordance, effect, critical_values(tasks, alpha))


def minimum_detectable_effect(
    tasks: int, *, discordance: float, alpha: float = 0.05, power: float = 0.8
) -> float | Undefined:
    """The smallest difference of pass rates that the test finds with this power."""
    _check(discordance, 0.0, alpha)
    require_open_share("power", power)
    require(power > alpha, f"power `{power}` must be above alpha `{alpha}`")
    require(tasks >= 0, f"tasks is a count, not `{tasks}`")
    critical = critical_values(tasks, alpha)
    best = _power(tasks, discordance, discordance, critical)
    if best < power:
        return Undefined(
            f"with {tasks} tasks power is {best:.3f} even if every discordant pair is a win"
        )

    def too_small(effect: float) -> bool:
        return _power(tasks, discordance, effect, critical) < power

    return crossing(too_small, 0.0, discordance)[1]


def tasks_needed(
    *, discordance: float, effect: float, alpha: float = 0.05, power: float = 0.8
) -> int | Undefined:
    """The least number of tasks with this power, such that one task fewer has less.

    Power of a discrete test climbs with small steps back, so a slightly smaller
    number can happen to reach it as well.
    """
    _check(discordance, effect, alpha)
    require_open_share("power", power)
    require(power > alpha, f"power `{power}` must be above alpha `{alpha}`")
    if effect == 0.0:
        return Undefined("an effect of 0 cannot be found")
    low = high = 1
    critical = critical_values(high, alpha)
    while _power(high, discordance, effect, critical) < power:
        if high >= _LIMIT:
            return Undefined(f"more than {_LIMIT} tasks")
        low, high = high, min(_LIMIT, 2 * high)
        critical = critical_values(high, alpha)
    while high - low > 1:
        middle = (low + high) // 2
        enough = _power(middle, discordance, effect, critical) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _power(tasks: int, discordance: float, effect: float, critical: list[int]) -> float:
    lean = effect / discordance
    sides = (1.0 + lean) / 2.0, (1.0 - lean) / 2.0
    total = 0.0
    for pairs in range(tasks + 1):
        weight = probability(pairs, tasks, discordance)
        if weight > _NEGLIGIBLE:
            total += weight * sum(at_most(critical[pairs], pairs, side) for side in sides)
    return min(1.0, total)


def _check(discordance: float, effect: float, alpha: float) -> None:
    require(
        0.0 < discordance <= 1.0, f"discordance must lie above 0 and up to 1, not `{discordance}`"
    )
    require(
        abs(effect) <= discordance,
        f"an effect of `{effect}` needs at least that much discordance, not `{discordance}`",
    )
    require_open_share("alpha", alpha)
