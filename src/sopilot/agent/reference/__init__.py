"""The reference executor, its judges and its ways to misbehave."""

from sopilot.agent.reference.judging import CannotJudge, Judge, Seen, TextJudge, VerdictJudge
from sopilot.agent.reference.misbehaviour import SWITCHES, Misbehaviour
from sopilot.agent.reference.model import Reference

__all__ = [
    "SWITCHES",
    "CannotJudge",
    "Judge",
    "Misbehaviour",
    "Reference",
    "Seen",
    "TextJudge",
    "VerdictJudge",
]
