"""The binomial distribution and the optimizers of SciPy, or a sentence about the missing extra."""

from __future__ import annotations

import math

from sopilot.messages.errors import UserMistake

try:
    from scipy import optimize
    from scipy.stats import binom, binomtest, false_discovery_control
except ModuleNotFoundError as missing:
    raise UserMistake("statistics need SciPy: pip install 'sopilot[lab]'") from missing

__all__ = ["binom", "binomtest", "false_discovery_control", "optimize", "p_value"]


def p_value(value: float) -> float:
    """Clip a computed p-value. One too small for a float is the smallest float, never 0."""
    return max(math.ulp(0.0), min(1.0, float(value)))
