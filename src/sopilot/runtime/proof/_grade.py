"""How good a verdict is."""

from __future__ import annotations

from enum import StrEnum


class Grade(StrEnum):
    PROVEN = "proven"
    """P1–P7 by the machine, or a gate by its action's success."""
    ATTESTED = "attested"
    """Judged by the executor, on evidence that meets P1–P5 and P7."""
    CLAIMED = "claimed"
    """Anything else."""
