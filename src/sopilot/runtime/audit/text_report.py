"""A report for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.language.diagnostics import visible
from sopilot.runtime.audit._audit_state import RefusedGoal
from sopilot.runtime.audit._finding import TITLES, Finding
from sopilot.runtime.audit._report import BatchCard, Report, ScoreCard
from sopilot.runtime.audit.place_words import place_in_words


def render_text(report: Report) -> str:
    return "\n".join(map(visible, _lines(report)))


def render_batch_text(batch: BatchCard) -> str:
    lines = [
        f"{batch.sessions} sessions, {batch.clean} clean",
        "outcomes: " + (_counts(dict(batch.outcomes)) or "none"),
        f"evidence coverage: {_share(batch.evidence_coverage)}",
        "verdicts: " + (_counts(dict(batch.grades)) or "none"),
        f"calls after the goal: {batch.calls_after_goal} of {batch.calls}",
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
    so_far = "no findings so far" if card.outcome == "waiting" else "no findings"
    yield (
        f"{name}: {card.outcome}, "
        + (so_far if not found else f"{found} finding{'s' if found > 1 else ''}")
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
    if report.unguarded:
        yield ""
        yield f"recorded, not held: {', '.join(report.unguarded)} (the handbook guards none of it)"
    yield ""
    yield from _card(card)


def _finding(finding: Finding) -> Iterator[str]:
    title = TITLES.get(finding.code, finding.code)
    yield f"#{finding.seq} {finding.severity} {finding.code}: {title.lower()}"
    yield f"    {finding.explanation}"
    if finding.sentence:
        yield f"    the SOP says: {finding.sentence}"
    if finding.frame:
        yield f"    at {place_in_words(finding.frame)}"


def _refusal(refusal: RefusedGoal) -> Iterator[str]:
    yield f"refused: {refusal.goal} at #{refusal.seq}"
    if refusal.reason:
        kept = any(cause.get("tells") for cause in refusal.causes)
        yield f"    {'reason' if kept else 'said'}: {refusal.reason}"
    if refusal.obstacle:
        yield f"    could not be carried out: {refusal.obstacle}"
    for cause in refusal.causes:
        evidence = ", ".join(f"#{seq}" for seq in cause["evidence"])
        cited = f" (evidence: {evidence})" if evidence else ""
        yield f"    required: {cause['sentence'] or cause['predicate']}"
        yield f"    found: {cause.get('found') or 'otherwise'}{cited}"
        if cause.get("tells"):
            yield f"    the customer is told only: {cause['tells']}"
        if cause["remedy"]:
            yield f"    the user could: {cause['remedy']}"
    if refusal.follows:
        yield f"    what follows: {refusal.follows}"


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
        role = f" as {one.role}" if one.role else ""
        yield f"    {one.decision} by {one.by}{role} ({one.identity}){why}"


def _card(card: ScoreCard) -> Iterator[str]:
    graded = f" ({_counts(dict(card.grades))})" if card.grades else ""
    yield (
        f"checks {card.checks}{graded}, {_evidence(card)}, "
        f"reused {card.reused}, rejected operations {card.rejected}"
    )
    yield f"calls of tools {card.calls}, after the goal {card.calls_after_goal}"
    if card.counts:
        yield f"findings: {_counts(dict(card.counts))}"


def _evidence(card: ScoreCard) -> str:
    """Of those that rest on an answer: what follows from the request alone needs none."""
    needing = card.checks_needing_evidence
    if not needing:
        return "none of them needs evidence"
    return f"evidence for {card.checks_with_evidence} of the {needing} that need it"


def _chain(card: ScoreCard) -> str:
    if card.chain is None:
        return ""
    return ", chain verified" if card.chain else ", CHAIN BROKEN"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _share(share: float | None) -> str:
    return "not needed" if share is None else f"{100 * share:.0f} %"
