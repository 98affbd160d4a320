"""Reports for terminals and scripts: marks, sums, both languages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from audit_desk import Desk

from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, ScoreCard, batch
from sopilot.audit.text import render_batch_text, render_text
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import Decision, Fail


def refused() -> Report:
    return Desk().log_in().check_funds(1, holds=False).do(Fail("too little")).report()


def test_checks_are_marked_against_the_requirement() -> None:
    lines = render_text(refused()).splitlines()
    assert lines[0] == "audit: refused, no findings"
    assert "    ✓ The user ann is logged in. (proven; evidence: #3)" in lines
    assert "    ✗ The balance of ann is at least 5. (proven; evidence: #7)" in lines
    assert "    ✗ required: The balance of ann is at least 5." in lines
    assert "    the customer could: Pay in what is missing." in lines


def test_a_report_in_chinese() -> None:
    lines = render_text(refused(), "zh").splitlines()
    assert lines[0] == "审计：已拒绝，没有发现问题"
    assert "    ✗ The balance of ann is at least 5.（已证明；证据：#7）" in lines
    assert any("以下情况不成立：The balance of ann is at least 5." in line for line in lines)


def test_the_words_inside_of_an_explanation_are_chinese_too() -> None:
    desk = Desk().log_in().check_funds().approve()
    text = render_text(desk.do(Decision("reject", "c3", "ida", "boss")).pay().report(), "zh")
    assert "审批已驳回" in text


def test_a_finding_in_the_terminal() -> None:
    report = Desk().log_in().do(Fail("no")).report()
    text = render_text(report)
    assert "#5 error refusal-without-cause: refusal without a false predicate" in text
    assert "    the SOP says: Pays a bill." in text
    assert json.loads(json.dumps(report.as_json())) == report.as_json()


# --- sums -------------------------------------------------------------------------------


def finding(code: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code, 7, f"{code}, explained", severity=severity)


FINDINGS = (
    finding("b"),
    finding("a", Severity.WARNING),
    finding("b", Severity.NOTE),
    finding("b", Severity.WARNING),
)


def report_on(*findings: Finding, **sums: Any) -> Report:
    values: dict[str, Any] = {
        "session_id": "s", "outcome": "completed", "calls": 4, "calls_after_goal": 1,
        "checks": 3, "checks_needing_evidence": 2, "checks_with_evidence": 1, **sums,
    }  # fmt: skip
    return Report(findings, ScoreCard(**values).counting(findings))


def test_a_score_card() -> None:
    assert report_on(*FINDINGS, grades={"proven": 2}).score_card.as_json() == {
        "session_id": "s", "outcome": "completed", "findings": {"a": 1, "b": 3}, "errors": 1,
        "warnings": 2, "domain_calls": 4, "calls_after_goal": 1, "checks": 3,
        "checks_needing_evidence": 2, "checks_with_evidence": 1, "evidence_coverage": 0.5,
        "grades": {"proven": 2}, "reused": 0, "rejected_operations": 0, "processes": {},
        "chain_verified": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("severities", "clean"),
    [
        ([], True),
        ([Severity.NOTE], True),
        ([Severity.NOTE, Severity.WARNING], False),
        ([Severity.ERROR], False),
    ],
)
def test_notes_leave_a_report_clean(severities: list[Severity], clean: bool) -> None:
    report = report_on(*(finding("a", severity) for severity in severities))
    assert report.clean is clean
    more = report.with_findings([finding("z")])
    assert more.clean is False
    assert more.score_card.errors == 1 + severities.count(Severity.ERROR)


def test_many_sessions_added_up() -> None:
    card = batch(
        [
            report_on(chain=True, grades={"proven": 2}),
            report_on(*FINDINGS, chain=False, grades={"claimed": 1, "proven": 1}),
            report_on(*FINDINGS[:1], outcome="abandoned", calls=6),
            report_on(FINDINGS[2], checks_needing_evidence=3, checks_with_evidence=3),
        ]
    )
    assert card.evidence_coverage == 6 / 9
    assert render_batch_text(card).splitlines() == [
        "4 sessions, 2 clean",
        "outcomes: abandoned 1, completed 3",
        "evidence coverage: 67 %",
        "verdicts: proven 3, claimed 1",
        "calls after the goal: 4 of 18",
        "broken chains: 1",
        "      1  a in 1 sessions",
        "      5  b in 3 sessions",
    ]


def test_no_sessions_added_up() -> None:
    assert batch([]).evidence_coverage is None
    assert render_batch_text(batch([])).startswith("0 sessions, 0 clean\noutcomes: none")


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (report_on(), "session s: completed, no findings"),
        (report_on(outcome="waiting"), "session s: waiting, no findings so far"),
        (report_on(FINDINGS[0], chain=False), "session s: completed, 1 finding, CHAIN BROKEN"),
    ],
)
def test_the_first_line(report: Report, line: str) -> None:
    assert render_text(report).splitlines()[0] == line
