"""The audit's answer: findings, refusals and a score card, per session and per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from sopilot.audit.findings import Finding, NotJudged
from sopilot.audit.leaf_reading import AuditGrade
from sopilot.audit.state import AuditState, CheckMade, Override, RefusedGoal
from sopilot.machine.state import Status, ending_of
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import identity_of
from sopilot.values.json import JSON

COMPLETED, REFUSED = "completed", "refused"


WAITING, ABANDONED = "waiting", "abandoned"


NOT_JUDGED = "not judged"


GRADES = tuple(str(grade) for grade in reversed(AuditGrade))


@dataclass(frozen=True, slots=True)
class ScoreCard:
    """``calls_after_goal`` is the paper's R2. ``evidence_coverage`` is the share of verdicts
    that need evidence and are proven or attested by it, ``None`` where none needs any: a claim
    is covered by nothing. ``grades`` counts all verdicts. ``chain`` is whether the
    chain of hashes is whole, ``None`` where there is none to check.

    ``outcome`` is that of the process started last: ``completed``; ``refused``, with
    or without a cause; ``waiting`` for one that goes on once people have decided or the user has
    answered; ``abandoned`` for one that the user gave up, or that did not end otherwise.
    """

    session_id: str | None
    outcome: str
    counts: Mapping[str, int]
    errors: int
    warnings: int
    calls: int
    calls_after_goal: int
    checks: int
    checks_with_evidence: int
    checks_needing_evidence: int
    reused: int
    rejected: int
    processes: Mapping[str, str]
    chain: bool | None
    grades: Mapping[str, int] = field(default_factory=dict)

    @property
    def evidence_coverage(self) -> float | None:
        if not self.checks_needing_evidence:
            return None
        return self.checks_with_evidence / self.checks_needing_evidence

    def as_json(self) -> dict[str, JSON]:
        return {
            "session_id": self.session_id,
            "outcome": self.outcome,
            "findings": dict(self.counts),
            "errors": self.errors,
            "warnings": self.warnings,
            "domain_calls": self.calls,
            "calls_after_goal": self.calls_after_goal,
            "checks": self.checks,
            "checks_needing_evidence": self.checks_needing_evidence,
            "checks_with_evidence": self.checks_with_evidence,
            "evidence_coverage": self.evidence_coverage,
            "grades": dict(self.grades),
            "reused": self.reused,
            "rejected_operations": self.rejected,
            "processes": dict(self.processes),
            "chain_verified": self.chain,
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person decided about a held call."""

    seq: int
    decision: str
    call_id: str
    by: str
    role: str
    reason: str
    identity: str = ""
    """How they proved who they are."""


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    score_card: ScoreCard
    refusals: tuple[RefusedGoal, ...] = ()
    checks: tuple[CheckMade, ...] = ()
    """What was judged, on which evidence, in the order of the events."""
    decisions: tuple[Decided, ...] = ()
    unguarded: tuple[str, ...] = ()
    """Actions that were called, change something, and that no program would have held."""
    not_judged: tuple[NotJudged, ...] = ()
    """Everything that this reader can't judge, each with its reason."""
    overrides: tuple[Override, ...] = ()
    """Guarded calls that people let through unproven. They may, and every report shows it."""
    verdict_of: str = ""
    """The kept audit that the verdict is from, where this reader can't judge."""

    @property
    def clean(self) -> bool | None:
        """No error and no warning; notes don't count. ``None``: something wasn't judged, and
        nothing that was is wrong."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return False
        return None if self.not_judged else True

    @property
    def unjudged(self) -> NotJudged | None:
        """Why nothing in the session was judged; ``None`` where something was."""
        return next((missing for missing in self.not_judged if missing.seq is None), None)

    def without_verdict(self, missing: NotJudged) -> Report:
        """The report of a reader who can't judge the session. Tampering shows without contents."""
        findings = [finding for finding in self.findings if finding.code == "tampering"]
        known = self.score_card
        report = not_judged(missing, known.session_id, chain=known.chain, findings=findings)
        return replace(report, decisions=self.decisions)

    def with_findings(self, more: Sequence[Finding]) -> Report:
        """The report with what was found outside of the events, counted in."""
        result = (*more, *self.findings)
        counts = dict(sorted(Counter(finding.code for finding in result).items()))
        card = replace(
            self.score_card,
            counts=counts,
            errors=sum(finding.severity is Severity.ERROR for finding in result),
            warnings=sum(finding.severity is Severity.WARNING for finding in result),
        )
        return replace(self, findings=result, score_card=card)

    def with_texts(self, shown: Callable[[JSON], JSON]) -> Report:
        """The report with every text and every detail as ``shown`` makes it."""

        def change(value: Any) -> Any:
            if isinstance(value, Enum) or value is None:
                return value
            if is_dataclass(value) and not isinstance(value, type):
                parts = {item.name: change(getattr(value, item.name)) for item in fields(value)}
                return replace(value, **parts)
            return tuple(map(change, value)) if isinstance(value, tuple) else shown(value)

        message = ("findings", "refusals", "checks", "decisions", "not_judged", "overrides")
        return replace(self, **{name: change(getattr(self, name)) for name in message})

    def as_json(self) -> dict[str, JSON]:
        return {
            "clean": self.clean,
            "findings": [finding.as_json() for finding in self.findings],
            "refusals": [refusal.as_json() for refusal in self.refusals],
            "checks": [check.as_json() for check in self.checks],
            "decisions": [asdict(decision) for decision in self.decisions],
            "unguarded": list(self.unguarded),
            "not_judged": [missing.as_json() for missing in self.not_judged],
            "overrides": [override.as_json() for override in self.overrides],
            "verdict_of": self.verdict_of or None,
            "score_card": self.score_card.as_json(),
        }


@dataclass(frozen=True, slots=True)
class BatchCard:
    """Score cards of many sessions, added up. ``not_judged``: sessions without a verdict, by
    reason. ``sessions`` and every sum leave out those of which nothing was judged."""

    sessions: int
    clean: int
    outcomes: Mapping[str, int]
    counts: Mapping[str, int]
    sessions_with: Mapping[str, int]
    calls: int
    calls_after_goal: int
    checks_needing_evidence: int
    checks_with_evidence: int
    chains_broken: int
    grades: Mapping[str, int] = field(default_factory=dict)
    not_judged: Mapping[str, int] = field(default_factory=dict)
    overrides: int = 0

    @property
    def evidence_coverage(self) -> float | None:
        if not self.checks_needing_evidence:
            return None
        return self.checks_with_evidence / self.checks_needing_evidence

    def as_json(self) -> dict[str, JSON]:
        return {
            "sessions": self.sessions,
            "clean": self.clean,
            "not_judged": dict(self.not_judged),
            "overrides": self.overrides,
            "outcomes": dict(self.outcomes),
            "findings": dict(self.counts),
            "sessions_with": dict(self.sessions_with),
            "domain_calls": self.calls,
            "calls_after_goal": self.calls_after_goal,
            "evidence_coverage": self.evidence_coverage,
            "grades": dict(self.grades),
            "chains_broken": self.chains_broken,
        }


def score(
    run: AuditState,
    findings: tuple[Finding, ...],
    chain: bool | None,
    session_id: str | None,
    *,
    ended: bool = True,
) -> ScoreCard:
    unfinished = WAITING if run.waits_for_people or not ended else ABANDONED
    outcomes = {}
    for process in run.processes.values():
        status = process.state.status
        if status in (Status.COMPLETED, Status.FAILED):
            outcomes[process.id] = ending_of(status, given_up=process.given_up)
        else:
            outcomes[process.id] = unfinished if process.id == run.active else ABANDONED
    needing = [check for check in run.checks if check.needs_evidence]
    return card(
        findings,
        session_id=session_id,
        outcome=list(outcomes.values())[-1] if outcomes else unfinished,
        calls=run.calls,
        calls_after_goal=run.calls_after_goal,
        checks=len(run.checks),
        needing=len(needing),
        covered=sum(check.covered for check in needing),
        reused=run.reused,
        rejected=run.rejected,
        processes=outcomes,
        chain=chain,
        grades=Counter(check.grade for check in run.checks if check.grade),
    )


def decided(run: AuditState) -> tuple[Decided, ...]:
    events = sorted((item for some in run.decisions.values() for item in some), key=lambda e: e.seq)
    return tuple(
        Decided(
            seq=event.seq,
            decision=str(event.payload.get("decision") or ""),
            call_id=str(event.payload.get("call_id") or ""),
            by=str(event.payload.get("by") or ""),
            role=str(event.payload.get("role") or ""),
            reason=reason if isinstance(reason := event.payload.get("reason"), str) else "",
            identity=identity_of(event.payload.get("principal")),
        )
        for event in events
    )


def card(
    findings: Iterable[Finding],
    *,
    session_id: str | None,
    outcome: str,
    calls: int,
    calls_after_goal: int,
    checks: int,
    needing: int,
    covered: int,
    reused: int = 0,
    rejected: int = 0,
    processes: Mapping[str, str] | None = None,
    chain: bool | None = None,
    grades: Mapping[str, int] | None = None,
) -> ScoreCard:
    result = list(findings)
    return ScoreCard(
        session_id,
        outcome,
        dict(sorted(Counter(finding.code for finding in result).items())),
        sum(finding.severity is Severity.ERROR for finding in result),
        sum(finding.severity is Severity.WARNING for finding in result),
        calls,
        calls_after_goal,
        checks,
        covered,
        needing,
        reused,
        rejected,
        processes or {},
        chain,
        {grade: count for grade in GRADES if (count := (grades or {}).get(grade, 0))},
    )


def kept_report(
    findings: Sequence[Finding],
    session_id: str,
    outcome: str,
    grades: Mapping[str, int],
    verdict_of: str,
    overrides: Sequence[Override] = (),
) -> Report:
    """A verdict from the records. What it rested on isn't there, and isn't counted."""
    known = card(
        findings, session_id=session_id, outcome=outcome, grades=grades,
        calls=0, calls_after_goal=0, checks=sum(grades.values()), needing=0, covered=0,
    )  # fmt: skip
    return Report(tuple(findings), known, overrides=tuple(overrides), verdict_of=verdict_of)


def not_judged(
    missing: NotJudged,
    session_id: str | None,
    *,
    chain: bool | None = None,
    findings: Sequence[Finding] = (),
) -> Report:
    """The report on a session that this reader can't judge."""
    empty = card(
        findings, session_id=session_id, outcome=NOT_JUDGED, chain=chain,
        calls=0, calls_after_goal=0, checks=0, needing=0, covered=0,
    )  # fmt: skip
    return Report(tuple(findings), empty, not_judged=(missing,))


def batch(reports: Iterable[Report]) -> BatchCard:
    return together(_alone(report) for report in reports)


def together(cards: Iterable[BatchCard]) -> BatchCard:
    """The sums of several batches."""
    result = list(cards)
    grades = _summed(item.grades for item in result)
    return BatchCard(
        sum(item.sessions for item in result),
        sum(item.clean for item in result),
        _summed(item.outcomes for item in result),
        _summed(item.counts for item in result),
        _summed(item.sessions_with for item in result),
        sum(item.calls for item in result),
        sum(item.calls_after_goal for item in result),
        sum(item.checks_needing_evidence for item in result),
        sum(item.checks_with_evidence for item in result),
        sum(item.chains_broken for item in result),
        {grade: grades[grade] for grade in GRADES if grades.get(grade)},
        _summed(item.not_judged for item in result),
        sum(item.overrides for item in result),
    )


def _alone(report: Report) -> BatchCard:
    card = report.score_card
    reasons = {str(report.not_judged[0].reason): 1} if report.clean is None else {}
    judged = report.unjudged is None
    return BatchCard(
        int(judged), int(report.clean is True), {card.outcome: 1} if judged else {},
        card.counts, dict.fromkeys(card.counts, 1),
        card.calls, card.calls_after_goal, card.checks_needing_evidence,
        card.checks_with_evidence, int(card.chain is False), card.grades, reasons,
        len(report.overrides),
    )  # fmt: skip


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
