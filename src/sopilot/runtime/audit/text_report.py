"""A report for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.runtime.audit._audit_state import RefusedGoal
from sopilot.runtime.audit._finding import TITLES, Finding
from sopilot.runtime.audit._report import BatchCard, Report, ScoreCard


def render_text(report: Report) -> str:
    return "\n".join(_lines(report))


def render_batch_text(batch: BatchCard) -> str:
    lines = [
        f"{batch.sessions} sessions, {batch.clean} clean",
        "outcomes: " + (_counts(dict(batch.outcomes)) or "none"),
        f"evidence coverage: {_share(batch.evidence_coverage)}",
        "verdicts: " + (_counts(dict(batch.grades)) or "none"),
        f"calls after the goal (R2): {batch.calls_after_goal} of {batch.calls}",
    ]
    if batch.chains_broken:
        lines.append(f"broken chains: {batch.chains_broken}")
    for code, count in batch.counts.items():
        lines.append(f"  {count:>5}  {code} in {batch.sessions_with[code]} sessions")
    return "\n".join(lines)


def _lines(report: Report) -> Iterator[str]:
    card = report.score_card
    name = f"session {card.session_id}" if card.session_id else "audit"
    found = len(report.findings)
    yield (
        f"{name}: {card.outcome}, "
        + ("no findings" if not found else f"{found} finding{'s' if found > 1 else ''}")
        + _chain(card)
    )
    for finding in report.findings:
        yield ""
        yield from _finding(finding)
    for refusal in report.refusals:
        yield ""
        yield from _refusal(refusal)
    if report.checks:
        yield ""
        yield from _checks(report)
    yield ""
    yield from _card(card)


def _finding(finding: Finding) -> Iterator[str]:
    title = TITLES.get(finding.code, finding.code)
    yield f"#{finding.seq} {finding.severity} {finding.code}: {title.lower()}"
    yield f"    {finding.explanation}"
    if finding.sentence:
        yield f"    the SOP says: {finding.sentence}"
    where = " ".join(part for part in (finding.process, finding.frame) if part)
    if where:
        yield f"    at {where}"


def _refusal(refusal: RefusedGoal) -> Iterator[str]:
    yield f"refused: {refusal.goal} at #{refusal.seq}"
    if refusal.reason:
        yield f"    said: {refusal.reason}"
    if refusal.obstacle:
        yield f"    could not be carried out: {refusal.obstacle}"
    for cause in refusal.causes:
        evidence = ", ".join(f"#{seq}" for seq in cause["evidence"]) or "none"
        yield f"    not met: {cause['sentence'] or cause['predicate']} (evidence: {evidence})"
        if cause["remedy"]:
            yield f"    the user could: {cause['remedy']}"


def _checks(report: Report) -> Iterator[str]:
    yield "what was checked:"
    for check in report.checks:
        word = "open" if check.holds is None else "yes" if check.holds else "no"
        evidence = ", ".join(f"#{seq}" for seq in check.evidence)
        told = [check.grade] if check.grade else []
        told += [f"evidence: {evidence}"] if evidence else []
        shown = f" ({'; '.join(told)})" if told else ""
        yield f"    {word:<4} {check.sentence or check.predicate}{shown}"
    for one in report.decisions:
        why = f": {one.reason}" if one.reason else ""
        yield f"    {one.decision} by {one.by}" + (f" as {one.role}" if one.role else "") + why


def _card(card: ScoreCard) -> Iterator[str]:
    graded = f" ({_counts(dict(card.grades))})" if card.grades else ""
    yield (
        f"checks {card.checks}{graded}, evidence coverage {_share(card.evidence_coverage)}, "
        f"reused {card.reused}, rejected operations {card.rejected}"
    )
    yield f"domain calls {card.calls}, after the goal (R2) {card.calls_after_goal}"
    if card.counts:
        yield f"findings: {_counts(dict(card.counts))}"


def _chain(card: ScoreCard) -> str:
    if card.chain is None:
        return ""
    return ", chain verified" if card.chain else ", CHAIN BROKEN"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _share(share: float | None) -> str:
    return "not needed" if share is None else f"{100 * share:.0f} %"
