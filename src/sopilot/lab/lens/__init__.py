"""The attention lens (extra ``lens``): where an open-weight model looks, and what it rests on.

Owns the requests of a recorded session, made again from its trace; the regions of
their text; the shares of attention on them; and what the next move's probability
loses without each. May import every room below it. Weights are loaded on use only.
"""

from sopilot.lab.lens._context import Context, Piece, Region, Turn
from sopilot.lab.lens._moments import ReadMoment, moments_of, spread
from sopilot.lab.lens._open_weights import OpenWeights, Prompt, Reading, load_weights
from sopilot.lab.lens._parity import Attention, attention_of
from sopilot.lab.lens._report import Summary, summarise
from sopilot.lab.lens.plot import plot
from sopilot.lab.lens.study import MomentStudy, study

__all__ = [
    "Attention",
    "Context",
    "MomentStudy",
    "OpenWeights",
    "Piece",
    "Prompt",
    "ReadMoment",
    "Reading",
    "Region",
    "Summary",
    "Turn",
    "attention_of",
    "load_weights",
    "moments_of",
    "plot",
    "spread",
    "study",
    "summarise",
]
