"""The reference executor, its judges and its ways to misbehave."""

from sopilot.runtime.agent.reference._judging import (
    CannotJudge,
    Judge,
    Seen,
    TextJudge,
    VerdictJudge,
)
from sopilot.runtime.agent.reference._misbehaviour import SWITCHES, Misbehaviour
from sopilot.runtime.agent.reference._model import Reference

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
