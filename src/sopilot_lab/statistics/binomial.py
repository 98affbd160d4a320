"""Tails of the binomial distribution: exact integers at one half, floats elsewhere.

Where something ceases to be so, between two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

_NEGLIGIBLE = 1e-18


def fair_tail(successes: int, trials: int) -> int:
    """How many of the ``2 ** trials`` fair sequences hold at most ``successes`` successes."""
    if successes < 0:
        return 0
    term = total = 1
    for drawn in range(min(successes, trials)):
        term = term * (trials - drawn) // (drawn + 1)
        total += term
    return total


def as_p(ways: int, of: int) -> float:
    """A p-value as a float. One too small for a float is the smallest float, never 0."""
    return max(math.ulp(0.0), min(1.0, float(Fraction(ways, of))))


def probability(successes: int, trials: int, chance: float) -> float:
    """The probability of exactly ``successes``."""
    if not 0 <= successes <= trials:
        return 0.0
    if chance in (0.0, 1.0):
        return float(successes == (trials if chance else 0))
    ways = (
        math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    )
    return math.exp(
        ways + successes * math.log(chance) + (trials - successes) * math.log1p(-chance)
    )


def at_most(successes: int, trials: int, chance: float) -> float:
    """The probability of ``successes`` or fewer.

    Sums the tail that lies away from the mean, outwards, and stops where the
    terms no longer count: the cost grows with the root of ``trials``.
    """
    if successes < 0:
        return 0.0
    if chance == 0.0:
        return 1.0
    if successes > trials * chance:
        return 1.0 - at_most(trials - successes - 1, trials, 1.0 - chance)
    term = probability(successes, trials, chance)
    terms = [term]
    odds = (1.0 - chance) / chance
    for count in range(successes, 0, -1):
        term *= count / (trials - count + 1) * odds
        terms.append(term)
        if term <= _NEGLIGIBLE * terms[0]:
            break
    return math.fsum(terms)


def crossing(left_of: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The last number that is left of it and the first that is not; there is none between."""
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if left_of(middle) else (low, middle)
    return low, high
