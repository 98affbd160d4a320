"""The page of an audit: what was found, refused and checked, and the run event by event."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.runtime.audit import TITLES, Finding, Report, ScoreCard
from sopilot.runtime.audit.place_words import moment, place_in_words
from sopilot.runtime.audit.timeline import TimelineRow
from sopilot.runtime.html_pages._templates import render


def render_audit(report: Report, rows: Sequence[TimelineRow], *, title: str = "Audit") -> str:
    by_event: dict[int, list[Finding]] = {}
    for finding in report.findings:
        by_event.setdefault(finding.seq, []).append(finding)
    card = report.score_card
    count = len(report.findings)
    found = f"{count} finding" + ("" if count == 1 else "s")
    under = [f"session {card.session_id}"] if card.session_id else []
    times = [row.at for row in rows if row.at]
    if times:
        under.append(f"{moment(min(times))} to {moment(max(times))}")
    return render(
        "audit.html",
        title=title,
        heading=title,
        under=under,
        verdict=_verdict(report, found),
        words_of=_WORDS,
        tiles=_tiles(card),
        report=report,
        titles=TITLES,
        place=place_in_words,
        rows=rows,
        by_event=by_event,
        known={row.seq for row in rows},
    )


_WORDS = {
    "domain_call": "tool called",
    "domain_result": "tool answered",
    "user_said": "customer said",
    "assistant_said": "agent said",
    "select_branch": "way taken",
    "bind_evidence": "evidence taken over",
    "reuse": "verdict reused",
    "emit_artifact": "document made",
    "rejected": "move refused",
}
"""What happened, in words for people who have not read the machine's."""


def _verdict(report: Report, found: str) -> tuple[str, str]:
    if not report.clean:
        return found, "bad"
    if report.score_card.outcome == "waiting":
        return "still waits; nothing found so far", ""
    return "clean", "good"


def _tiles(card: ScoreCard) -> list[tuple[str, object, str]]:
    coverage = card.evidence_coverage
    chain = {None: ("not sealed", ""), True: ("verified", "good"), False: ("broken", "bad")}
    return [
        ("Outcome", card.outcome, ""),
        ("Checks made", card.checks, ""),
        (
            "Evidence",
            "none needed"
            if coverage is None
            else f"{card.checks_with_evidence} of {card.checks_needing_evidence} that need it",
            "bad" if coverage is not None and coverage < 1 else "",
        ),
        ("Calls of tools", card.calls, ""),
        ("After the goal", card.calls_after_goal, "bad" if card.calls_after_goal else ""),
        ("Chain", *chain[card.chain]),
    ]
