"""The audit's word on a session that was played: what it says otherwise than the guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.handbook.expressions import judge
from sopilot.program.model import Program
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Event


def contradictions(
    programs: Mapping[str, Program], events: Sequence[Event] | Sequence[SealedEvent]
) -> list[Finding]:
    """Calls that the guard let through and the audit finds unproven, calls that it held and the
    audit finds proven, grades that differ, and a trace that does not replay."""
    report = audit_trace(programs, events, judge=judge, ended=False)
    return [
        one
        for one in report.findings
        if one.code in ("guard-violated", "guard-disagrees", "inconsistent-trace")
        or "ran unproven" in one.explanation
    ]
