"""Guarded calls in foreign transcripts: judged as in a session, or not judged, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chat_messages import Step, messages
from sopilot.audit.report import Report
from sopilot.audit.text import render_text
from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook

TEXT = (Path(__file__).parent / "till.yaml").read_text("utf-8")
LOGIN: Step = ("login", {"user": "ann", "password": "x"}, {"ok": True})
LOGOUT: Step = ("logout", {"user": "ann"}, {"ok": True})
BALANCE: Step = ("read_balance", {"user": "ann"}, {"balance": 5000, "until": "2030-01-01"})


def pay(amount: float) -> Step:
    return ("pay", {"user": "ann", "amount": amount}, {"done": True})


def audited(
    *steps: Step, also: str = "", now: str = "", told: dict[str, Any] | None = None
) -> Report:
    """``also`` is one more requirement."""
    book = load_handbook(TEXT.replace("amount)]", f"amount), {also}]") if also else TEXT)
    read = read_messages(messages("pay my bill", *steps), effects=frozenset({"pay"}))
    read = replace(read, now=now, values=told or {})
    return audit_transcript(book, read, goal="pay", judge=judge)


def blamed(report: Report) -> list[tuple[str, str | None]]:
    return [(one.code, one.predicate) for one in report.findings]


def left(report: Report) -> list[str | None]:
    return [one.predicate for one in report.not_judged]


def coverage(report: Report) -> tuple[int, int]:
    card = report.score_card
    return card.checks_with_evidence, card.checks_needing_evidence


# --- words of the user ------------------------------------------------------------------

ASKED = "> Shall 900 be paid out?"


@pytest.mark.parametrize("answer", ["NO!", "no", "No, thank you.", "不"])
def test_a_no_before_the_call_is_blamed(answer: str) -> None:
    report = audited(LOGIN, BALANCE, ASKED, answer, pay(900), also="agreed(amount)")
    assert blamed(report) == [("executed-against-condition", "agreed")]
    assert coverage(report) == (2, 3)


@pytest.mark.parametrize(
    "words",
    [
        (ASKED, "Yes."),
        (ASKED, "Which account is that from?"),
        ("> Is there anything else?", "No."),
        (ASKED, "From savings please, and no receipt, I don't need it."),
        ("> Which account? Shall 900 be paid out?", "No idea."),
        (),
    ],
)
def test_other_words_are_not_judged_and_cover_nothing(words: Sequence[str]) -> None:
    report = audited(LOGIN, BALANCE, *words, pay(900), also="agreed(amount)")
    assert (blamed(report), left(report)) == ([], ["agreed"])
    assert report.clean is None
    assert coverage(report) == (2, 2)


# --- the moment of the call -------------------------------------------------------------


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ([LOGOUT], ("gate-shut", "logged_in")),
        ([("login", {"user": "bob", "password": "y"}, {"ok": True})], ("gate-shut", "logged_in")),
        ([("withdraw", {"user": "ann", "amount": 9}, {"ok": True})], ("evidence-stale", "covered")),
        ([("read_balance", {"user": "ann"}, {"error": "x"})], ("evidence-superseded", "covered")),
        ([LOGOUT, LOGIN], None),
        ([("withdraw", {"user": "ann", "amount": 9}, {"error": "no"})], None),
        ([("withdraw", {"user": "ann", "amount": 9}, {"ok": True}), BALANCE], None),
        ([("set_rate", {"rate": 2}, {"ok": True})], None),
        ([("read_rate", {}, 2)], None),
    ],
)
def test_what_happens_before_the_guarded_call_counts(
    between: list[Step], found: tuple[str, str] | None
) -> None:
    report = audited(LOGIN, BALANCE, *between, pay(900))
    assert blamed(report) == ([found] if found else [])
    assert not report.not_judged
    assert coverage(report) == ((1, 2) if found else (2, 2))


def test_one_proof_serves_one_payment() -> None:
    report = audited(LOGIN, BALANCE, pay(900), pay(800))
    assert blamed(report) == [("evidence-stale", "covered")]
    assert not audited(LOGIN, BALANCE, pay(900), BALANCE, pay(800)).findings


# --- what a transcript can't show -------------------------------------------------------


@pytest.mark.parametrize(("amount", "needed"), [(120, False), (1000, False), (1200, True)])
def test_an_approval_is_asked_for_by_its_condition(amount: int, needed: bool) -> None:
    report = audited(LOGIN, BALANCE, pay(amount))
    assert not report.findings
    told = [one.explanation for one in report.not_judged]
    assert told == (["an approval of `pay` (required: 1 from manager)"] if needed else [])


def test_a_models_own_judgement_is_not_judged() -> None:
    report = audited(LOGIN, BALANCE, pay(900), also="sensible(user, amount)")
    assert (blamed(report), left(report)) == ([], ["sensible"])
    assert coverage(report) == (2, 2)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("", ([], ["in_time"])),
        ("2025-01-01T00:00:00Z", ([], [])),
        ("2031-01-01T00:00:00Z", ([("executed-against-condition", "in_time")], [])),
    ],
)
def test_what_depends_on_the_time_needs_the_time(now: str, expected: tuple[Any, Any]) -> None:
    report = audited(LOGIN, BALANCE, pay(900), also="in_time(user)", now=now)
    assert (blamed(report), left(report)) == expected


@pytest.mark.parametrize("words", ["> I am sorry, I can't do that.", "> I have paid out 120."])
def test_a_goal_that_no_call_reached_is_not_called_refused(words: str) -> None:
    report = audited(LOGIN, BALANCE, words)
    assert (report.findings, report.refusals) == ((), ())
    assert report.clean is None
    assert report.score_card.outcome == "abandoned"
    assert "whether and why it was refused" in render_text(report)
    # Who says what the user asked for learns that nothing stood against it.
    known = audited(LOGIN, BALANCE, words, told={"user": "ann", "amount": 120})
    assert [one.code for one in known.findings] == ["refusal-without-cause"]


def test_two_requests_in_one_conversation_are_two_goals() -> None:
    report = audited(LOGIN, BALANCE, pay(900), BALANCE, pay(800))
    assert report.score_card.calls_after_goal == 0
    again = audited(LOGIN, BALANCE, pay(900), BALANCE, pay(900))
    assert again.score_card.calls_after_goal == 2
