"""The page of an audit: what was found, refused and checked, and the run event by event."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sopilot.runtime.audit import TITLES, Finding, Report, ScoreCard
from sopilot.runtime.audit.timeline import TimelineRow
from sopilot.runtime.pages._templates import render


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
        under.append(f"{_when(min(times))} to {_when(max(times))}")
    return render(
        "audit.html",
        title=title,
        heading=title,
        under=under,
        verdict=("clean", "good") if report.clean else (found, "bad"),
        tiles=_tiles(card),
        report=report,
        titles=TITLES,
        rows=rows,
        by_event=by_event,
        known={row.seq for row in rows},
    )


def _tiles(card: ScoreCard) -> list[tuple[str, object, str]]:
    coverage = card.evidence_coverage
    chain = {None: ("not sealed", ""), True: ("verified", "good"), False: ("broken", "bad")}
    return [
        ("Outcome", card.outcome, ""),
        ("Checks made", card.checks, ""),
        (
            "Evidence",
            "–" if coverage is None else f"{100 * coverage:.0f} %",
            "bad" if coverage is not None and coverage < 1 else "",
        ),
        ("Domain calls", card.calls, ""),
        ("After the goal", card.calls_after_goal, "bad" if card.calls_after_goal else ""),
        ("Chain", *chain[card.chain]),
    ]


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
