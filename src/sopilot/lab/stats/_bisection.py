"""Where something ceases to be so, between two numbers."""

from __future__ import annotations

from collections.abc import Callable


def crossing(left_of: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The last number that is left of it and the first that is not; there is none between."""
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if left_of(middle) else (low, middle)
    return low, high
