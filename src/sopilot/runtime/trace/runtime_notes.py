"""The notes that only the runtime writes, by name."""

from __future__ import annotations

OPENED = "opened"
PROGRAM_CHANGED = "program_changed"
HELD_CALL = "held_call"
OUTCOME_UNKNOWN = "outcome_unknown"

AWAITS_ROOT = "root"
AWAITS_APPROVAL = "approval"
AWAITS_OUTCOME = "outcome"
AWAITS_DECISION = "decision"
"""A call like one that waits already."""
