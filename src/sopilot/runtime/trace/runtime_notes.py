"""The notes that only the runtime writes, by name."""

from __future__ import annotations

from sopilot.runtime.vm.operations import PROGRAM_CHANGED as PROGRAM_CHANGED

OPENED = "opened"
HELD_CALL = "held_call"
OUTCOME_UNKNOWN = "outcome_unknown"
ANSWERED_LATE = "answered_late"
"""A tool said how a call ended after a person had said otherwise."""
DECISION_REFUSED = "decision_refused"
"""Somebody tried to decide who may not."""

AWAITS_ROOT = "root"
AWAITS_APPROVAL = "approval"
AWAITS_OUTCOME = "outcome"
AWAITS_DECISION = "decision"
"""A call like one that waits already."""

RESERVED = frozenset(
    {ANSWERED_LATE, DECISION_REFUSED, HELD_CALL, OPENED, OUTCOME_UNKNOWN, PROGRAM_CHANGED}
)
