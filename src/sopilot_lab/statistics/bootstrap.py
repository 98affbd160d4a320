"""The percentile bootstrap over units, for statistics that are made of sums."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sopilot_lab.statistics.undefined import Interval, Undefined, require, require_open_share

DRAWS = 10_000
Sums = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """``skipped`` counts the draws in which the statistic did not exist."""

    interval: Interval
    units: int
    draws: int
    skipped: int


def bootstrap_interval(
    units: Sequence[Sums],
    statistic: Callable[[Sums], float | None],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
) -> BootstrapInterval | Undefined:
    """Draw as many units as there are, with replacement; add up their columns; apply
    ``statistic`` to the sums (``None`` where it does not exist); take the percentiles.

    Units are the clusters, so that dependence inside one is kept.
    """
    require_open_share("confidence", confidence)
    require(draws > 0, f"draws must be positive, not `{draws}`")
    if len(units) < 2:
        return Undefined("resampling needs at least two units")
    generator = random.Random(seed)
    values: list[float] = []
    for _ in range(draws):
        drawn = generator.choices(units, k=len(units))
        value = statistic(tuple(sum(column) for column in zip(*drawn, strict=True)))
        if value is not None:
            values.append(value)
    if not values:
        return Undefined("the statistic existed in no draw")
    values.sort()
    tail = (1.0 - confidence) / 2.0
    lowest = int(tail * len(values))
    interval = Interval(values[lowest], values[len(values) - 1 - lowest])
    return BootstrapInterval(interval, len(units), draws, draws - len(values))
