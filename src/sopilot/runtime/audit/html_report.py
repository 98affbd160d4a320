"""A report as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from sopilot.runtime.audit.audit_state import Refusal
from sopilot.runtime.audit.finding import TITLES, Finding
from sopilot.runtime.audit.html_style import STYLE
from sopilot.runtime.audit.report import Report, ScoreCard
from sopilot.runtime.audit.timeline import Row

_CODE = re.compile(r"`([^`]*)`")
_ACTORS = {
    "model": "model",
    "machine": "machine",
    "tool": "tool",
    "user": "user",
    "operator": "operator",
    "runtime": "runtime",
}


def render_html(report: Report, rows: Sequence[Row], *, title: str = "Audit") -> str:
    """The page. Everything that comes from a trace is escaped."""
    by_event: dict[int, list[Finding]] = {}
    for finding in report.findings:
        by_event.setdefault(finding.seq, []).append(finding)
    known = {row.seq for row in rows}
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>",
        _head(report, title, rows),
        _tiles(report.score_card),
        _findings(report.findings, known),
        _refusals(report.refusals, known),
        _checks(report, known),
        '<section><h2>Timeline</h2><ol class="timeline">',
        *(_row(row, by_event.get(row.seq, ())) for row in rows),
        "</ol></section></main></body></html>",
    ]
    return "\n".join(part for part in parts if part)


def _head(report: Report, title: str, rows: Sequence[Row]) -> str:
    card = report.score_card
    verdict = "clean" if report.clean else _plural(len(report.findings), "finding")
    named = [f"session {card.session_id}"] if card.session_id else []
    times = [row.at for row in rows if row.at]
    if times:
        named.append(f"{_when(min(times))} to {_when(max(times))}")
    session = "".join(f'<p class="session">{escape(one)}</p>' for one in named)
    tone = "good" if report.clean else "bad"
    return (
        f"<header><div><h1>{escape(title)}</h1>{session}</div>"
        f'<p class="verdict {tone}">{escape(verdict)}</p></header>'
    )


def _tiles(card: ScoreCard) -> str:
    coverage = card.evidence_coverage
    chain = {None: "not sealed", True: "verified", False: "broken"}[card.chain]
    tiles = [
        ("Outcome", card.outcome, ""),
        ("Checks made", str(card.checks), ""),
        (
            "Evidence",
            "–" if coverage is None else f"{100 * coverage:.0f} %",
            "bad" if coverage is not None and coverage < 1 else "",
        ),
        ("Domain calls", str(card.calls), ""),
        ("After the goal", str(card.calls_after_goal), "bad" if card.calls_after_goal else ""),
        ("Chain", chain, "bad" if card.chain is False else "good" if card.chain else ""),
    ]
    inner = "".join(
        f'<div class="tile {tone}"><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value, tone in tiles
    )
    return f'<dl class="tiles">{inner}</dl>'


def _findings(findings: Iterable[Finding], known: set[int]) -> str:
    items = "".join(_finding(finding, known) for finding in findings)
    if not items:
        return '<section><h2>Findings</h2><p class="none">Nothing to report.</p></section>'
    return f'<section><h2>Findings</h2><ul class="findings">{items}</ul></section>'


def _finding(finding: Finding, known: set[int]) -> str:
    sentence = f"<blockquote>{escape(finding.sentence)}</blockquote>" if finding.sentence else ""
    where = " · ".join(
        escape(part) for part in (finding.process or "", finding.frame, finding.code) if part
    )
    return (
        f'<li class="{finding.severity}"><div class="line"><strong>'
        f"{escape(TITLES.get(finding.code, finding.code))}</strong>{_link(finding.seq, known)}"
        f"</div><p>{_words(finding.explanation)}</p>{sentence}"
        f'<p class="where">{where}</p></li>'
    )


def _refusals(refusals: Iterable[Refusal], known: set[int]) -> str:
    items = []
    for refusal in refusals:
        causes = "".join(
            f"<li>{escape(str(cause['sentence'] or cause['predicate']))} "
            + "".join(_link(seq, known) for seq in cause["evidence"])
            + (
                f'<p class="remedy">What could be done next: {escape(str(cause["remedy"]))}</p>'
                if cause["remedy"]
                else ""
            )
            + "</li>"
            for cause in refusal.causes
        )
        said = f"<p>{escape(refusal.reason)}</p>" if refusal.reason else ""
        listed = f"<ul>{causes}</ul>" if causes else "<p>No false requirement was shown.</p>"
        if refusal.obstacle:
            listed = f"<p>It could not be carried out: {_words(refusal.obstacle)}.</p>{listed}"
        items.append(
            f'<article class="refusal"><div class="line"><strong>{escape(refusal.goal)} was '
            f"refused</strong>{_link(refusal.seq, known)}</div>{said}{listed}</article>"
        )
    return f"<section><h2>Refusals</h2>{''.join(items)}</section>" if items else ""


def _checks(report: Report, known: set[int]) -> str:
    if not report.checks:
        return ""
    lines = "".join(
        f"<tr><td>{escape(check.sentence or check.predicate)}</td>"
        f"<td>{'holds' if check.holds else 'does not hold'}</td>"
        f"<td>{''.join(_link(seq, known) for seq in check.evidence) or '–'}</td>"
        f"<td>{_link(check.seq, known)}</td></tr>"
        for check in report.checks
    )
    people = "".join(
        f"<li>{escape(one.decision)} by {escape(one.by)}"
        + (f" as {escape(one.role)}" if one.role else "")
        + (f": {escape(one.reason)}" if one.reason else "")
        + f" {_link(one.seq, known)}</li>"
        for one in report.decisions
    )
    return (
        '<section><h2>What was checked</h2><table class="checks"><thead><tr><th>requirement</th>'
        "<th>verdict</th><th>evidence</th><th>judged</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>"
        + (f'<ul class="people">{people}</ul>' if people else "")
        + "</section>"
    )


def _row(row: Row, findings: Sequence[Finding]) -> str:
    cited = "".join(f'<a class="seq" href="#e{seq}">#{seq}</a>' for seq in row.evidence)
    notes = "".join(
        f'<p class="note {finding.severity}">{escape(TITLES.get(finding.code, finding.code))}'
        + (f": <q>{escape(finding.sentence)}</q>" if finding.sentence else "")
        + "</p>"
        for finding in findings
    )
    worst = min((str(finding.severity) for finding in findings), default="")
    actor = _ACTORS.get(row.actor, "other")
    return (
        f'<li id="e{row.seq}" class="{worst}" style="--depth:{min(row.depth, 8)}">'
        f'<span class="number">{row.seq}</span>'
        f'<span class="actor {actor}">{escape(row.actor)}</span>'
        f'<div class="what"><span class="kind">{escape(row.kind.replace("_", " "))}</span> '
        f'<span class="says {row.tone}">{escape(row.says)}</span> {cited}'
        f'<div class="place">{escape(row.place)}</div>{notes}</div></li>'
    )


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _words(text: str) -> str:
    """Escaped, with names in backticks set as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _link(seq: int, known: set[int]) -> str:
    if seq in known:
        return f'<a class="seq" href="#e{seq}">#{seq}</a>'
    return f'<span class="seq">#{seq}</span>'


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
