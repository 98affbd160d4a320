"""The handbooks that ship, each with a world to try it in.

Owns three desks: handbook, simulator, tasks, ground truth and oracle. The
simulators implement ``Tools``; the oracle judges a run by its calls and states.
May import every room below except ``adapters``; its desks need ``handbook``
and the protocols of ``session`` only.
"""

from sopilot.desks.bundled._desk import BundledDesk, bundled_names, handbook_text, load_desk
from sopilot.desks.bundled._oracle import Judgement
from sopilot.desks.bundled._simulator import SimulatedCall, Simulator, State
from sopilot.desks.bundled._task import TAGS, DeskTask, ExpectedEnding

__all__ = [
    "TAGS",
    "BundledDesk",
    "DeskTask",
    "ExpectedEnding",
    "Judgement",
    "SimulatedCall",
    "Simulator",
    "State",
    "bundled_names",
    "handbook_text",
    "load_desk",
]
