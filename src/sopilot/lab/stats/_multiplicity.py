"""Several contrasts at once: the Benjamini–Hochberg step-up procedure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from sopilot.lab.stats._undefined import require, require_open_share


@dataclass(frozen=True, slots=True)
class Adjusted:
    p: float
    adjusted: float
    rejected: bool


def benjamini_hochberg(p_values: Sequence[float], q: float = 0.05) -> tuple[Adjusted, ...]:
    """Adjusted p-values in the order given, and which contrasts survive at rate ``q``."""
    require_open_share("q", q)
    for value in p_values:
        require(0.0 <= value <= 1.0, f"a p-value lies between 0 and 1, not `{value}`")
    count = len(p_values)
    order = sorted(range(count), key=lambda place: p_values[place], reverse=True)
    corrected = (p_values[place] * (count / (count - passed)) for passed, place in enumerate(order))
    smallest = list(accumulate(corrected, min))
    adjusted = {place: smallest[passed] for passed, place in enumerate(order)}
    return tuple(
        Adjusted(value, adjusted[place], adjusted[place] <= q)
        for place, value in enumerate(p_values)
    )
