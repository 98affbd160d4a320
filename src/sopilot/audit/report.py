"""The audit's answer: findings, refusals and a score card, per session and per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from sopilot.audit.findings import Finding, NotJudged
from sopilot.audit.state import AuditState, CheckMade, Override, RefusedGoal
from sopilot.machine.state import ProofLevel, Status, ending_of
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import Event, identity_of
from sopilot.values.json import JSON

COMPLETED, REFUSED, WAITING, ABANDONED = "completed", "refused", "waiting", "abandoned"


NOT_JUDGED = "not judged"


GRADES = tuple(map(str, ProofLevel))


@dataclass(frozen=True, slots=True)
class ScoreCard:
    """The sums of one session.

    ``outcome`` is that of the process started last: ``completed``; ``refused``, with or without a
    cause; ``waiting`` for people or the user; ``abandoned``. ``calls_after_goal`` is the paper's
    R2. ``chain`` is whether the hash chain is whole, ``None`` without one.
    """

    session_id: str | None
    outcome: str
    calls: int = 0
    calls_after_goal: int = 0
    checks: int = 0
    checks_with_evidence: int = 0
    checks_needing_evidence: int = 0
    reused: int = 0
    rejected: int = 0
    processes: Mapping[str, str] = field(default_factory=dict[str, str])
    chain: bool | None = None
    grades: Mapping[str, int] = field(default_factory=dict[str, int])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    errors: int = 0
    warnings: int = 0

    def counting(self, findings: Iterable[Finding]) -> ScoreCard:
        listed = list(findings)
        return replace(
            self,
            counts=dict(sorted(Counter(finding.code for finding in listed).items())),
            errors=sum(finding.severity is Severity.ERROR for finding in listed),
            warnings=sum(finding.severity is Severity.WARNING for finding in listed),
        )

    @property
    def evidence_coverage(self) -> float | None:
        """The share of verdicts that need evidence and are proven or attested by it."""
        needing = self.checks_needing_evidence
        return self.checks_with_evidence / needing if needing else None

    def as_json(self) -> dict[str, JSON]:
        values = {_JSON_NAMES.get(name, name): item for name, item in asdict(self).items()}
        return values | {"evidence_coverage": self.evidence_coverage}


_JSON_NAMES = {
    "calls": "domain_calls",
    "rejected": "rejected_operations",
    "chain": "chain_verified",
    "counts": "findings",
}


@dataclass(frozen=True, slots=True)
class Decided:
    """A person's decision about a held call; ``identity`` is how they proved who they are."""

    seq: int
    decision: str
    call_id: str
    by: str
    role: str
    reason: str
    identity: str = ""


def decided(event: Event) -> Decided:
    payload = event.payload
    reason = payload.get("reason")
    texts = {name: str(payload.get(name) or "") for name in ("decision", "call_id", "by", "role")}
    return Decided(
        event.seq,
        **texts,
        reason=reason if isinstance(reason, str) else "",
        identity=identity_of(payload.get("principal")),
    )


def simply_clean(clean: bool | None, *, overridden: bool) -> bool | None:
    """``clean`` as a report states it: ``None`` if people let an unproven call through."""
    return None if clean and overridden else clean


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit. ``checks`` are the verdicts in the order of events. ``proofs`` maps
    the event of each guarded call to its requirements. ``unguarded`` lists actions that may change
    something and that no program guards. Readers without rights to the contents get the verdict of
    a stored audit, which ``verdict_of`` names."""

    findings: tuple[Finding, ...]
    score_card: ScoreCard
    refusals: tuple[RefusedGoal, ...] = ()
    checks: tuple[CheckMade, ...] = ()
    decisions: tuple[Decided, ...] = ()
    unguarded: tuple[str, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    overrides: tuple[Override, ...] = ()
    proofs: Mapping[int, tuple[CheckMade, ...]] = field(default_factory=dict)
    verdict_of: str = ""

    @property
    def clean(self) -> bool | None:
        """Whether there is no error and no warning; notes don't count. ``None`` if there is
        neither, but something couldn't be judged."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return False
        return None if self.not_judged else True

    @property
    def unjudged(self) -> NotJudged | None:
        """The reason why nothing in the session could be judged; ``None`` if something could."""
        return next((missing for missing in self.not_judged if missing.seq is None), None)

    def without_verdict(self, missing: NotJudged) -> Report:
        """The report for a reader who can't see the contents. It still names tampering."""
        findings = [finding for finding in self.findings if finding.code == "tampering"]
        known = self.score_card
        report = not_judged(missing, known.session_id, chain=known.chain, findings=findings)
        return replace(report, decisions=self.decisions)

    def with_findings(self, more: Sequence[Finding]) -> Report:
        """The report with additional findings that don't come from the events."""
        findings = (*more, *self.findings)
        return replace(self, findings=findings, score_card=self.score_card.counting(findings))

    def with_texts(self, shown: Callable[[JSON], JSON]) -> Report:
        """The report with ``shown`` applied to every text and detail."""

        def change(value: Any) -> Any:
            if isinstance(value, Enum) or value is None:
                return value
            if is_dataclass(value) and not isinstance(value, type):
                parts = {item.name: change(getattr(value, item.name)) for item in fields(value)}
                return replace(value, **parts)
            return tuple(map(change, value)) if isinstance(value, tuple) else shown(value)

        texts = ("findings", "refusals", "checks", "decisions", "not_judged", "overrides")
        proofs = {seq: change(checks) for seq, checks in self.proofs.items()}
        return replace(self, proofs=proofs, **{name: change(getattr(self, name)) for name in texts})

    def as_json(self) -> dict[str, JSON]:
        return {
            "clean": simply_clean(self.clean, overridden=bool(self.overrides)),
            "findings": [finding.as_json() for finding in self.findings],
            "refusals": [refusal.as_json() for refusal in self.refusals],
            "checks": [check.as_json() for check in self.checks],
            "decisions": [asdict(decision) for decision in self.decisions],
            "unguarded": list(self.unguarded),
            "not_judged": [missing.as_json() for missing in self.not_judged],
            "overrides": [override.as_json() for override in self.overrides],
            "proofs": {
                str(seq): [check.as_json() for check in checks]
                for seq, checks in self.proofs.items()
            },
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
    grades: Mapping[str, int]
    not_judged: Mapping[str, int]
    overrides: int

    @property
    def evidence_coverage(self) -> float | None:
        needing = self.checks_needing_evidence
        return self.checks_with_evidence / needing if needing else None

    def as_json(self) -> dict[str, JSON]:
        values = {_JSON_NAMES.get(name, name): item for name, item in asdict(self).items()}
        return values | {"evidence_coverage": self.evidence_coverage}


def counted_checks(
    checks: Sequence[CheckMade], proofs: Mapping[int, Sequence[CheckMade]]
) -> Sequence[CheckMade]:
    """The checks that a score card counts. Without steps of a program, they are the requirements of
    the guarded calls, each as it was judged last."""
    judged = (check for seq in sorted(proofs) for check in proofs[seq])
    return checks or [*{(check.predicate, check.sentence): check for check in judged}.values()]


def report_of(
    run: AuditState,
    findings: tuple[Finding, ...],
    chain: bool | None,
    session_id: str | None,
    *,
    ended: bool,
) -> Report:
    unfinished = WAITING if run.waits_for_people or not ended else ABANDONED
    outcomes = {}
    for process in run.processes.values():
        status = process.state.status
        if status in (Status.COMPLETED, Status.FAILED):
            outcomes[process.id] = ending_of(status, given_up=process.given_up)
        else:
            outcomes[process.id] = unfinished if process.id == run.active else ABANDONED
    checks = counted_checks(run.checks, run.proofs)
    needing = [check for check in checks if check.needs_evidence]
    grades = Counter(check.grade for check in checks)
    card = ScoreCard(
        session_id,
        list(outcomes.values())[-1] if outcomes else unfinished,
        calls=run.calls,
        calls_after_goal=run.calls_after_goal,
        checks=len(checks),
        checks_with_evidence=sum(check.covered for check in needing),
        checks_needing_evidence=len(needing),
        reused=run.reused,
        rejected=run.rejected,
        processes=outcomes,
        chain=chain,
        grades={grade: grades[grade] for grade in GRADES if grades[grade]},
    )
    decisions = (event for events in run.decisions.values() for event in events)
    return Report(
        findings,
        card.counting(findings),
        tuple(run.refusals),
        tuple(run.checks),
        tuple(decided(event) for event in sorted(decisions, key=lambda event: event.seq)),
        run.unguarded(),
        tuple(run.not_judged),
        tuple(run.overrides),
        run.proofs,
    )


def kept_report(
    findings: Sequence[Finding],
    session_id: str,
    outcome: str,
    grades: Mapping[str, int],
    verdict_of: str,
    overrides: Sequence[Override] = (),
) -> Report:
    """A verdict from the records, without the sums that it rested on."""
    card = ScoreCard(session_id, outcome, checks=sum(grades.values()), grades=grades)
    card = card.counting(findings)
    return Report(tuple(findings), card, overrides=tuple(overrides), verdict_of=verdict_of)


def not_judged(
    missing: NotJudged,
    session_id: str | None,
    *,
    chain: bool | None = None,
    findings: Sequence[Finding] = (),
) -> Report:
    """The report on a session that this reader can't judge."""
    card = ScoreCard(session_id, NOT_JUDGED, chain=chain).counting(findings)
    return Report(tuple(findings), card, not_judged=(missing,))


def batch(reports: Iterable[Report]) -> BatchCard:
    return together(map(_alone, reports))


def together(cards: Iterable[BatchCard]) -> BatchCard:
    """The sums of several batches."""
    listed = list(cards)
    sums: dict[str, Any] = {}
    for item in fields(BatchCard):
        values = [getattr(card, item.name) for card in listed]
        is_number = item.type == "int"
        sums[item.name] = sum(values) if is_number else _summed(values)
    grades = sums["grades"]
    sums["grades"] = {grade: grades[grade] for grade in GRADES if grades.get(grade)}
    return BatchCard(**sums)


def _alone(report: Report) -> BatchCard:
    card, judged = report.score_card, report.unjudged is None
    return BatchCard(
        sessions=int(judged),
        clean=int(report.clean is True and not report.overrides),
        outcomes={card.outcome: 1} if judged else {},
        counts=card.counts,
        sessions_with=dict.fromkeys(card.counts, 1),
        calls=card.calls,
        calls_after_goal=card.calls_after_goal,
        checks_needing_evidence=card.checks_needing_evidence,
        checks_with_evidence=card.checks_with_evidence,
        chains_broken=int(card.chain is False),
        grades=card.grades,
        not_judged={str(report.not_judged[0].reason): 1} if report.clean is None else {},
        overrides=len(report.overrides),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
