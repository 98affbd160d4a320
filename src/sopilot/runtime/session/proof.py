"""Whether the active process has proven what it checked: the audit's word on the trace so far.

One definition of proof: what the audit would call an error afterwards holds the call before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.language.diagnostics import Severity, SopilotError
from sopilot.language.program import Program
from sopilot.runtime.audit import Finding, audit_trace
from sopilot.runtime.audit.audit_state import Judge
from sopilot.runtime.vm import Event

ABOUT_EVIDENCE = frozenset(
    {
        "return-without-evidence",
        "unproven-verdict",
        "evidence-contradicts-verdict",
        "evidence-unresolved",
        "evidence-outside-interval",
        "evidence-stale",
        "evidence-wrong-call",
        "evidence-wrong-arguments",
        "skipped-check",
        "wrong-branch",
    }
)
_UNREADABLE = frozenset({"inconsistent-trace", "withheld-payload"})
"""Behind these the audit judges no further: nothing is proven, whatever the process."""
_MOST_NAMED = 3


def missing_proof(
    programs: Mapping[str, Program],
    events: Sequence[Event],
    process: str,
    *,
    changes: Mapping[int, Mapping[str, Program]],
    judge: Judge,
) -> str:
    """Which checks of ``process`` are not proven, and why; empty when all are. What cannot be
    judged is not proven. Speaks of predicates and never of values, because it is recorded."""
    try:
        report = audit_trace(programs, events, changes=changes, judge=judge, ended=False)
    except (SopilotError, LookupError, TypeError, ValueError, AttributeError) as problem:
        return f"the trace could not be judged ({type(problem).__name__})"
    doubts = [one for one in report.findings if _casts_doubt(one, process)]
    named = "; ".join(_told(one) for one in doubts[:_MOST_NAMED])
    more = len(doubts) - _MOST_NAMED
    return f"{named}; and {more} more" if more > 0 else named


def _casts_doubt(finding: Finding, process: str) -> bool:
    if finding.code in _UNREADABLE:
        return True
    about = finding.code in ABOUT_EVIDENCE and finding.severity is Severity.ERROR
    return about and finding.process == process


def _told(finding: Finding) -> str:
    if finding.code in _UNREADABLE:
        return f"event {finding.seq} cannot be judged"
    check = finding.predicate or finding.frame
    return f"`{check}` is not proven, because {finding.explanation} (event {finding.seq})"
