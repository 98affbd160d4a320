"""The reference executor, its judges and its ways to misbehave."""

from sopilot.runtime.agent.reference._judging import (
    CannotJudge,
    PredicateJudge,
    Seen,
    TextJudge,
    VerdictJudge,
)
from sopilot.runtime.agent.reference._misbehaviour import SWITCHES, Misbehaviour
from sopilot.runtime.agent.reference._model import Reference

__all__ = [
    "SWITCHES",
    "CannotJudge",
    "Misbehaviour",
    "PredicateJudge",
    "Reference",
    "Seen",
    "TextJudge",
    "VerdictJudge",
]
