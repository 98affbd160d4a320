"""Reports for terminals and scripts: marks, sums, both languages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_desk import Desk
from audited_sessions import (
    BOOK,
    COUNTER,
    SMALL,
    at_the_counter,
    payments,
    step_by_step,
    transcripts,
    withheld,
    without_a_machine,
)
from test_misleading_transcripts import BANK, JUDGED

from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, ScoreCard, batch
from sopilot.audit.state import Override
from sopilot.audit.text import about_lines, mark, render_batch_text, render_text, verdict_words
from sopilot.audit.timeline import Seal, about_session, entries_of, rows_of
from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript, audit_untracked
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.messages.diagnostic import Severity
from sopilot.runner.audit_store import Judged
from sopilot.trace.events import Decision, Fail, Note
from sopilot.values.json import JSON


def test_the_words_inside_of_an_explanation_are_chinese_too() -> None:
    desk = Desk().log_in().check_funds().approve()
    text = render_text(desk.do(Decision("reject", "c3", "ida", "boss")).pay().report(), "zh")
    assert "审批已驳回" in text


def test_an_expiry_names_no_person() -> None:
    texts = [render_text(at_the_counter()["expired"].report(), name) for name in ("en", "zh")]
    lines = [line for text in texts for line in text.splitlines()]
    assert {"    expired", "    过期"} <= set(lines)


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


def test_a_session_that_people_let_through_unproven_is_in_no_sum_of_clean_ones() -> None:
    override = Override(3, "pay", ("Mia",), ("`sanctioned` must be false",))
    report = replace(report_on(), overrides=(override,))
    card = batch([report, report_on()])
    assert (card.clean, card.overrides) == (1, 1)
    assert render_batch_text(card).splitlines()[:2] == ["2 sessions, 1 clean", "overrides: 1"]
    assert report.as_json()["clean"] is None
    assert Judged(card).as_json()["clean"] is None
    assert replace(report, findings=FINDINGS).as_json()["clean"] is False


def test_many_sessions_added_up() -> None:
    card = batch(
        [
            report_on(chain=True, grades={"proven": 2}),
            report_on(*FINDINGS, chain=False, grades={"claimed": 1, "proven": 1}),
            report_on(*FINDINGS[:1], outcome="abandoned", calls=6, chain=False),
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
        "broken chains: 2",
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


# --- word for word ------------------------------------------------------------------------

SHOWN = (
    "carried out",
    "told",
    "no answer",
    "let through unproven",
    "amended by people",
    "called otherwise",
)
"""Sessions whose report is shown as a whole."""


def in_lines(report: Report) -> Iterator[str]:
    """What a report says, one line for each thing."""
    card = report.score_card
    shares = f"evidence {card.checks_with_evidence}/{card.checks_needing_evidence}"
    after = f"{card.calls_after_goal} of {card.calls} calls after the goal"
    yield f"{verdict_words(report)}; {shares} of {card.checks}; {after}"
    for missing in report.not_judged:
        about = f"{missing.action} {missing.predicate}"
        yield f"#{missing.seq} not judged, {about}: {missing.reason}: {missing.explanation}"
    for override in report.overrides:
        yield f"#{override.seq} {override.action} let through by {override.by}: {override.unproven}"
    for found in report.findings:
        about = f"{found.process} {found.frame} {found.predicate}"
        details = json.dumps(dict(found.details)) if found.details else ""
        yield f"#{found.seq} {found.severity} {found.code}, {about}: {found.explanation}"
        yield f"    {found.sentence} {details}".rstrip()
    for refusal in report.refusals:
        yield "refused " + json.dumps({name: it for name, it in refusal.as_json().items() if it})
    by_event = {**{check.seq: (check,) for check in report.checks}, **report.proofs}
    for seq, checks in by_event.items():
        listed = (f"{mark(it)} {it.predicate} {it.grade} {list(it.evidence)}" for it in checks)
        yield f"#{seq} " + ", ".join(listed)


def in_capitals(value: JSON) -> JSON:
    return value.upper() if isinstance(value, str) else value


def compared(name: str, reports: Mapping[str, Iterable[str]]) -> None:
    """With the golden file; ``SOPILOT_REGOLD=1`` rewrites it. Of neighbours that are numbered and
    say the same, the last is named."""
    blocks: dict[str, str] = {}
    last = ("", "")
    for title, lines in reports.items():
        text = "\n".join(f"    {line}" for line in lines if line)
        family = title.rstrip("0123456789")
        if (family, text) == last:
            blocks.popitem()
        last, blocks[title] = (family, text), text
    shown = "".join(f"{title}\n{text}\n\n" for title, text in blocks.items())
    golden = Path(__file__).parent / "golden" / f"{name}.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(shown, "utf-8")
    assert shown == golden.read_text("utf-8")


def test_what_is_found_in_sessions() -> None:
    every = {**at_the_counter(), **withheld(), **step_by_step()}
    reports = {name: in_lines(desk.report()) for name, desk in every.items()}
    reports["under changed programs"] = in_lines(every["proven"].report(changes={5: COUNTER}))
    compared("sessions", reports)
    whole: dict[str, list[str]] = {}
    for name in SHOWN:
        report, events = every[name].report(), every[name].events
        for language in ("en", "zh"):
            whole[f"{name}, {language}"] = render_text(report, language).splitlines()
        whole[f"{name}, with other texts"] = [*in_lines(report.with_texts(in_capitals))]
        whole[f"{name}, as a course"] = [
            f"#{it.seq} {it.kind} {it.title}: {it.state} {it.tone} {it.requested}".rstrip()
            for it in entries_of(events, report.proofs)
        ]
        whole[f"{name}, by events"] = [
            f"#{it.seq} {it.kind} {it.place}: {it.says}" for it in rows_of(events)
        ]
    compared("reports", whole)


def test_the_head_of_a_report() -> None:
    opened = {"programs": {"pay": "0123456789"}, "handbook": "desk", "requester": "ann"}
    heads: dict[str, Iterable[str]] = {}
    for name, note in (("opened", Note("opened", opened)), ("not opened", Note("x"))):
        about = about_session(Desk().do(note, actor="runtime").log_in().events)
        for sealed, seal in (("", None), (", sealed", Seal(0.0, 9)), (", in part", Seal(0.0, 2))):
            heads[name + sealed] = [*about_lines(about, seal, "en", stored=True)]
        heads[f"{name}, from a file"] = [*about_lines(about, None, "zh")]
    heads["nothing"] = [*about_lines(None, None, "en"), *about_lines(about_session([]), None, "en")]
    compared("heads", heads)


def test_what_is_found_in_sessions_without_a_machine() -> None:
    options: dict[str, Any] = {"goal": None, "chain": [], "judge": judge}
    reports = {
        name: in_lines(audit_untracked(BOOK, desk.events, **{**options, **known}))
        for name, (desk, known) in without_a_machine().items()
    }
    compared("without-a-machine", reports)


def test_what_is_found_in_transcripts() -> None:
    reports: dict[str, Iterable[str]] = {}
    for name, (said, goal) in transcripts().items():
        read = read_messages(said, effects=frozenset({"refund", "send", "close"}))
        if goal == SMALL:
            read, goal = replace(read, values={"user": "ann", "amount": 5}), "refund"
        reports[name] = in_lines(audit_transcript(BOOK, read, goal=goal, judge=judge))
    # A question that names the amount by itself, where the handbook's own doesn't.
    silent = BANK.replace("{amount} is paid to {to}.", "A payment to {to}.")
    rows = [(BANK, name, said) for name, said, _ in JUDGED]
    for text, name, said in [*((silent, *payment) for payment in payments().items()), *rows]:
        read = read_messages(said, effects=frozenset({"pay", "close"}))
        report = audit_transcript(load_handbook(text), read, goal="pay", judge=judge)
        reports[f"payment: {name}"] = in_lines(report)
    compared("transcripts", reports)
