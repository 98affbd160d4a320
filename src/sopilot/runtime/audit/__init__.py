"""Trace to findings; other people's transcripts judged against the same programs.

Owns findings, score cards, reports and the reading of foreign transcripts. Pure.
Makes every event again by its own reading of the programs, so that what the
machine wrote about itself is checked and not believed. May import the rooms
below it.
"""

from sopilot.runtime.audit._audit_state import RefusedGoal
from sopilot.runtime.audit._auditing import audit_trace
from sopilot.runtime.audit._finding import TITLES, Finding
from sopilot.runtime.audit._report import BatchCard, Report, ScoreCard, batch, together

__all__ = [
    "TITLES",
    "BatchCard",
    "Finding",
    "RefusedGoal",
    "Report",
    "ScoreCard",
    "audit_trace",
    "batch",
    "together",
]
