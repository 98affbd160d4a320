"""The reference executor, its judges and its ways to misbehave."""

from sopilot.runtime.agent.reference.judging import (
    CannotJudge,
    Judge,
    Seen,
    TextJudge,
    VerdictJudge,
)
from sopilot.runtime.agent.reference.misbehaviour import SWITCHES, Misbehaviour
from sopilot.runtime.agent.reference.model import Reference

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
