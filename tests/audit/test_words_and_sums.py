"""What a report says and adds up: cases by table."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.audit.findings import Finding
from sopilot.audit.report import Decided, Report, ScoreCard, batch, card
from sopilot.audit.state import CheckMade, RefusedGoal
from sopilot.audit.text import (
    function_in_words,
    moment,
    place_in_words,
    render_batch_text,
    render_text,
    with_moments,
)
from sopilot.messages.diagnostic import Severity

# --- places and moments ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("transfer/all_of_6_to_within_limit/logged_in@ask", "transfer › logged in"),
        ("pay_bill@act", "pay bill"),
        ("pay_bill", "pay bill"),
        ("a/any_of_b/c_d@e@f", "a › c d"),
        ("", ""),
    ],
)
def test_a_place(frame: str, words: str) -> None:
    assert place_in_words(frame) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("logged_in", "logged_in"),
        ("all_of_6_to_within_limit", "all of 6 requirements"),
        ("any_of_2_to_x", "one of 2 ways"),
        ("in_order_3_to_x", "3 requirements in their order"),
        ("first_of_x", "the first of the ways that holds"),
    ],
)
def test_a_function(name: str, words: str) -> None:
    assert function_in_words(name) == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"at": 1}, {"at": "1970-01-01 00:00:01 UTC"}),
        ({"expires_at": 1.5}, {"expires_at": "1970-01-01 00:00:01 UTC"}),
        ({"at": 0, "x_at": -1}, {"at": 0, "x_at": -1}),
        ({"at": 1e11}, {"at": 1e11}),
        ({"at": "soon", "cat": 5, "late": 5}, {"at": "soon", "cat": 5, "late": 5}),
        ([1], [1]),
        ("x", "x"),
        (None, None),
    ],
)
def test_moments_among_details(value: Any, shown: Any) -> None:
    assert with_moments(value) == shown
    assert moment(0) == "1970-01-01 00:00:00 UTC"


# --- sums -----------------------------------------------------------------------------


def finding(code: str, severity: Severity = Severity.ERROR, **more: Any) -> Finding:
    return Finding(code, 7, f"{code}, explained", severity=severity, **more)


FOUND = (
    finding("b"),
    finding("a", Severity.WARNING),
    finding("b", Severity.NOTE),
    finding("b", Severity.WARNING),
)


def scored(*findings: Finding, **given: Any) -> ScoreCard:
    sums: dict[str, Any] = {
        "session_id": "s", "outcome": "completed", "calls": 4, "calls_after_goal": 1,
        "checks": 3, "needing": 2, "covered": 1, **given,
    }  # fmt: skip
    return card(findings, **sums)


def test_a_score_card() -> None:
    made = scored(*FOUND, grades={"claimed": 1, "proven": 2, "odd": 5, "stated": 0})
    assert made.as_json() == {
        "session_id": "s", "outcome": "completed", "findings": {"a": 1, "b": 3}, "errors": 1,
        "warnings": 2, "domain_calls": 4, "calls_after_goal": 1, "checks": 3,
        "checks_needing_evidence": 2, "checks_with_evidence": 1, "evidence_coverage": 0.5,
        "grades": {"proven": 2, "claimed": 1}, "reused": 0, "rejected_operations": 0,
        "processes": {}, "chain_verified": None,
    }  # fmt: skip
    assert list(made.grades) == ["proven", "claimed"]
    more = scored(needing=0, covered=0, reused=2, rejected=3, processes={"p": "x"}, chain=False)
    assert more.evidence_coverage is None
    assert (more.reused, more.rejected, more.processes, more.chain) == (2, 3, {"p": "x"}, False)


@pytest.mark.parametrize(
    ("severities", "clean"),
    [([], True), ([Severity.NOTE], True), ([Severity.NOTE, Severity.WARNING], False),
     ([Severity.ERROR], False)],
)  # fmt: skip
def test_what_is_clean(severities: list[Severity], clean: bool) -> None:
    found = tuple(finding("a", one) for one in severities)
    report = Report(found, scored(*found))
    assert report.clean is clean
    assert report.as_json()["clean"] is clean
    more = report.with_findings([finding("z"), finding("y", Severity.WARNING)])
    assert not more.clean
    assert [one.code for one in more.findings] == ["z", "y", *["a"] * len(found)]
    assert (more.score_card.errors, more.score_card.warnings) == (
        1 + severities.count(Severity.ERROR),
        1 + severities.count(Severity.WARNING),
    )
    assert list(more.score_card.counts) == sorted(more.score_card.counts)
    assert more.score_card.counts["z"] == 1


BATCH = batch(
    [
        Report((), scored(chain=True, grades={"proven": 2})),
        Report(FOUND, scored(*FOUND, chain=False, grades={"claimed": 1, "proven": 1})),
        Report(FOUND[:1], scored(*FOUND[:1], outcome="abandoned", calls=6)),
        Report(FOUND[2:3], scored(*FOUND[2:3], calls_after_goal=0, needing=3, covered=3)),
    ]
)


def test_many_sessions_added_up() -> None:
    assert BATCH.as_json() == {
        "sessions": 4, "clean": 2, "not_judged": {}, "overrides": 0,
        "outcomes": {"abandoned": 1, "completed": 3},
        "findings": {"a": 1, "b": 5}, "sessions_with": {"a": 1, "b": 3}, "domain_calls": 18,
        "calls_after_goal": 3, "evidence_coverage": 6 / 9, "grades": {"proven": 3, "claimed": 1},
        "chains_broken": 1,
    }  # fmt: skip
    assert list(BATCH.outcomes) == ["abandoned", "completed"]
    assert render_batch_text(BATCH).splitlines() == [
        "4 sessions, 2 clean",
        "outcomes: abandoned 1, completed 3",
        "evidence coverage: 67 %",
        "verdicts: proven 3, claimed 1",
        "calls after the goal: 3 of 18",
        "broken chains: 1",
        "      1  a in 1 sessions",
        "      5  b in 3 sessions",
    ]


def test_no_sessions_added_up() -> None:
    none = batch([])
    assert none.evidence_coverage is None
    assert render_batch_text(none).splitlines() == [
        "0 sessions, 0 clean", "outcomes: none", "evidence coverage: not needed",
        "verdicts: none", "calls after the goal: 0 of 0",
    ]  # fmt: skip


# --- a report in a terminal -----------------------------------------------------------


def test_a_report_with_everything() -> None:
    found = (
        finding("skipped-check", sentence="Checks.", frame="pay/all_of_2_to_x/ok@a"),
        finding("odd", Severity.NOTE),
    )
    causes: tuple[dict[str, Any], ...] = (
        {"evidence": [3, 4], "sentence": "It is.", "predicate": "it", "found": "It is not.",
         "remedy": "Pay.", "customer_message": ""},
        {"evidence": [], "sentence": "", "predicate": "it", "found": "", "remedy": "",
         "customer_message": "Nothing."},
    )  # fmt: skip
    refusals = (
        RefusedGoal(9, "p1", "pay", "too little", causes, follows="Start `other`."),
        RefusedGoal(10, "p2", "pay", "why", causes[:1], obstacle="it failed"),
        RefusedGoal(11, "p3", "pay", "", ()),
    )
    checks = (
        CheckMade(4, "p1", "f", "it", "It is.", True, (3, 4), True, True, "proven"),
        CheckMade(5, "p1", "f", "it", "", False, (), True, False, ""),
        CheckMade(6, "p1", "f", "it", "", None, (3,), True, False, ""),
    )
    decisions = (
        Decided(7, "approve", "c", "Sue", "head", "fine", "token"),
        Decided(8, "reject", "c", "Bob", "", "", "unauthenticated"),
    )
    report = Report(
        found,
        scored(*found, chain=True, grades={"proven": 1}, reused=2, rejected=3),
        refusals,
        checks,
        decisions,
        ("pay", "wire"),
    )
    assert render_text(report).splitlines() == [
        "session s: completed, 2 findings, chain verified",
        "",
        "#7 error skipped-check: required check skipped",
        "    skipped-check, explained",
        "    the SOP says: Checks.",
        "    at pay › ok",
        "",
        "#7 note odd: odd",
        "    odd, explained",
        "",
        "refused: pay at #9",
        "    reason: too little",
        "    required: It is.",
        "    found: It is not. (evidence: #3, #4)",
        "    the user could: Pay.",
        "    required: it",
        "    found: otherwise",
        "    the customer is told only: Nothing.",
        "    what follows: Start `other`.",
        "",
        "refused: pay at #10",
        "    said: why",
        "    could not be carried out: it failed",
        "    required: It is.",
        "    found: It is not. (evidence: #3, #4)",
        "    the user could: Pay.",
        "",
        "refused: pay at #11",
        "",
        "what was checked:",
        "    yes  It is. (proven; evidence: #3, #4)",
        "    no   it",
        "    open it (evidence: #3)",
        "    approve by Sue as head (token): fine",
        "    reject by Bob (unauthenticated)",
        "",
        "recorded, not held: pay, wire (the handbook guards none of it)",
        "",
        "checks 3 (proven 1), evidence for 1 of the 2 that need it, reused 2, "
        "rejected operations 3",
        "calls of tools 4, after the goal 1",
        "findings: odd 1, skipped-check 1",
    ]
    told = report.as_json()
    assert [len(told[key]) for key in ("findings", "refusals", "checks", "decisions")] == [
        2, 3, 3, 2,
    ]  # fmt: skip
    assert told["unguarded"] == ["pay", "wire"]
    assert told["checks"][0]["evidence"] == [3, 4]
    assert told["findings"][0]["title"] == "Required check skipped"
    assert told["refusals"][1] == {
        "seq": 10, "process": "p2", "goal": "pay", "reason": "why",
        "causes": [causes[0]], "obstacle": "it failed", "follows": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "found", "line"),
    [
        ({}, (), "session s: completed, no findings"),
        ({"session_id": None, "outcome": "waiting"}, (), "audit: waiting, no findings so far"),
        ({"chain": False}, FOUND[:1], "session s: completed, 1 finding, CHAIN BROKEN"),
        ({"outcome": "waiting"}, FOUND[:1], "session s: waiting, 1 finding"),
    ],
)
def test_the_first_line(given: dict[str, Any], found: tuple[Finding, ...], line: str) -> None:
    assert render_text(Report(found, scored(*found, **given))).splitlines()[0] == line


def test_where_no_check_needs_evidence() -> None:
    assert render_text(Report((), scored(needing=0, covered=0))).splitlines()[-2:] == [
        "checks 3, none of them needs evidence, reused 0, rejected operations 0",
        "calls of tools 4, after the goal 1",
    ]
