"""A figure that does not exist, an interval, and the checks every figure shares."""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.messages.errors import UserMistake


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

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def require(holds: bool, message: str) -> None:
    if not holds:
        raise UserMistake(message)


def require_open_share(name: str, value: float) -> None:
    # Written so that a NaN, which compares false with everything, is refused too.
    require(0.0 < value < 1.0, f"{name} must lie strictly between 0 and 1, not `{value}`")
