"""Transcripts of agents that never ran here."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from audit_desk import BOOK as APPROVED
from audit_desk import HANDBOOK as WITH_APPROVAL
from audit_desk import codes
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_messages import messages
from json_values import json_values
from sopilot.audit.report import Report
from sopilot.audit.transcript_files import (
    LONGEST_VALUE,
    read_messages,
    read_value,
    success_first_outcome,
)
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake

HANDBOOK = re.sub(r"\n    approval: .*", "", WITH_APPROVAL)
BOOK = load_handbook(HANDBOOK)

REQUEST = "pay my bill"
LOGIN = ("login", {"user": "ann", "password": "x"}, True)
BALANCE = ("read_balance", {"user": "ann"}, {"balance": 10})
IN_ORDER = "{in_order: [logged_in(user), funds(user, amount)]}"
GUARDED = HANDBOOK.replace(IN_ORDER, "funds(user, amount)")
"""Only the verifier asks for the login."""
PAY = ("pay", {"user": "ann", "amount": 5}, {"done": True})


def audited(*steps: tuple[str, Any, Any]) -> Report:
    transcript = read_messages(messages(REQUEST, *steps), outcome=success_first_outcome)
    return audit_transcript(BOOK, transcript, goal="pay", judge=judge)


POOR = ("read_balance", {"user": "ann"}, {"balance": 1})
OF_BOB = ("read_balance", {"user": "bob"}, {"balance": 10})
NOTED = ("pay", {"user": "ann", "amount": 5, "memo": "hi"}, {"done": True})


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([LOGIN, BALANCE, PAY], []),
        # A tool may answer with a pair of success and value.
        ([LOGIN, (*BALANCE[:2], [True, BALANCE[2]]), PAY], []),
        ([LOGIN, BALANCE, (*PAY[:2], [False, "no"])], []),
        ([], ["refusal-without-cause"]),
        ([LOGIN, PAY], ["premature-goal", "skipped-check"]),
        # A check of somebody else is none, and neither is a verifier without its own login.
        ([LOGIN, OF_BOB, PAY], ["unlicensed-call", "premature-goal", "skipped-check"]),
        ([BALANCE, LOGIN, PAY], ["unlicensed-call", "premature-goal", "skipped-check"]),
        ([LOGIN, POOR, PAY], ["executed-against-condition"]),
        ([LOGIN, POOR, (*PAY[:2], False)], []),
        ([LOGIN, BALANCE, PAY, BALANCE, PAY], ["calls-after-goal", "calls-after-goal"]),
        # An extra argument that the tool took saves nobody.
        ([LOGIN, POOR, NOTED], ["unlicensed-call", "executed-against-condition"]),
        ([LOGIN, NOTED], ["unlicensed-call", "premature-goal", "skipped-check"]),
    ],
)
def test_what_is_found_in_a_dialog(steps: list[tuple[str, Any, Any]], found: list[str]) -> None:
    report = audited(*steps)
    assert codes(report) == found
    assert report.clean is (not found)
    assert report.score_card.calls_after_goal == found.count("calls-after-goal")
    if steps == [LOGIN, BALANCE, PAY]:
        assert report.score_card.outcome == "completed"
        assert report.score_card.evidence_coverage == 1.0


@pytest.mark.parametrize(("arguments", "amount"), [(PAY[1], "5"), ({"user": "ann"}, "…")])
def test_a_finding_names_what_the_call_was_about(arguments: Any, amount: str) -> None:
    finding = audited(LOGIN, ("pay", arguments, {"done": True})).findings[-1]
    assert finding.predicate == "funds"
    assert finding.sentence == f"The balance of ann is at least {amount}."


def test_a_refusal_carries_its_cause() -> None:
    report = audited(LOGIN, ("read_balance", {"user": "ann"}, {"balance": 1}))
    assert report.clean is None
    assert not report.refusals
    # Without the amount nobody can judge the balance.
    assert report.score_card.outcome == "abandoned"
    shut = audited(("login", {"user": "ann", "password": "no"}, False))
    assert shut.score_card.outcome == "refused"
    assert shut.refusals[0].causes[0]["remedy"] == "Log in with the right password."


def test_a_way_to_check_that_needs_the_check_itself_explains_no_refusal() -> None:
    book = load_handbook("""
handbook: desk
actions:
  see: {input: {user: string}, requires: fine(user)}
  look: {input: {user: string}}
  pay: {input: {user: string}}
predicates:
  fine(user): {says: F., verify: {any: [see(user), look(user)]}, verdict: result.ok}
procedures:
  pay: {requires: fine(user)}
""")
    transcript = read_messages(messages(REQUEST))
    report = audit_transcript(book, transcript, goal="pay", judge=judge)
    assert codes(report) == ["refusal-without-cause"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("not json", "arguments that are not an object"),
        ({"user": "ann"}, "without `amount`"),
        ({"user": "ann", "amount": 5, "unit": "euro"}, "takes no `unit`"),
    ],
)
def test_a_call_that_no_tool_runs_is_a_warning(arguments: Any, problem: str) -> None:
    report = audited(LOGIN, BALANCE, ("pay", arguments, "TypeError: bad call"))
    assert [problem in finding.explanation for finding in report.findings] == [True]
    assert report.score_card.errors == 0


def test_an_unknown_goal_is_misuse() -> None:
    with pytest.raises(UserMistake, match="pay"):
        audit_transcript(BOOK, read_messages([]), goal="play", judge=judge)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(True, {'a': 1})", (True, {"a": 1})),
        ('{"a": true}', {"a": True}),
        ("__import__('os').getcwd()", "__import__('os').getcwd()"),
        ("open('/etc/passwd').read()", "open('/etc/passwd').read()"),
        ("9" * (LONGEST_VALUE + 1), "9" * (LONGEST_VALUE + 1)),
        ("[" * 5_000, "[" * 5_000),
    ],
)
def test_values_are_read_and_never_run(text: str, value: object) -> None:
    assert read_value(text) == value


@settings(deadline=None, max_examples=200)
@given(
    json_values(
        st.sampled_from(["role", "content", "tool_calls", "function", "name", "id", "arguments"]),
        most=12,
    )
)
def test_any_message_is_read_or_refused(message: Any) -> None:
    try:
        transcript = read_messages([message])
    except UserMistake:
        return
    audit_transcript(BOOK, transcript, goal="pay", judge=judge)


def test_a_guard_of_a_verifier_is_a_cause() -> None:
    book = load_handbook(GUARDED)
    shut = read_messages(
        messages(REQUEST, ("login", {"user": "ann", "password": "no"}, False)),
        outcome=success_first_outcome,
    )
    report = audit_transcript(book, shut, goal="pay", judge=judge)
    assert report.clean
    assert [one["predicate"] for one in report.refusals[0].causes] == ["logged_in"]


# --- what an answer proves ------------------------------------------------------------


def plainly(*steps: tuple[str, Any, Any], book: Any = BOOK) -> Report:
    """As `sopilot audit` reads anybody's tools."""
    transcript = read_messages(messages(REQUEST, *steps), effects=frozenset({"pay"}))
    return audit_transcript(book, transcript, goal="pay", judge=judge)


@pytest.mark.parametrize(
    "answer", [{"error": "timeout"}, None, "it is fine, trust me", {"amount": 10}, {"ok": False}]
)
def test_a_goal_on_a_check_that_shows_nothing(answer: Any) -> None:
    report = plainly(LOGIN, ("read_balance", {"user": "ann"}, answer), PAY)
    assert codes(report) == ["unproven-verdict"]
    assert report.findings[0].predicate == "funds"
    assert report.score_card.evidence_coverage == 0.5
    assert codes(plainly(LOGIN, ("read_balance", {"user": "ann"}, answer), BALANCE, PAY)) == []


def test_a_check_that_was_never_answered_shows_nothing() -> None:
    given = [
        one for one in messages(REQUEST, LOGIN, BALANCE, PAY) if one.get("tool_call_id") != "s2"
    ]
    report = audit_transcript(BOOK, read_messages(given), goal="pay", judge=judge)
    assert codes(report) == ["unproven-verdict"]


def test_what_only_a_model_can_judge_needs_a_success() -> None:
    book = load_handbook(re.sub(r"\n    verdict: .*", "", HANDBOOK))
    read = plainly(LOGIN, ("read_balance", {"user": "ann"}, "prose"), PAY, book=book)
    assert [one.predicate for one in read.not_judged] == ["funds"]
    assert not read.findings
    failed = plainly(LOGIN, ("read_balance", {"user": "ann"}, "Error: no"), PAY, book=book)
    assert codes(failed) == ["unproven-verdict"]


@pytest.mark.parametrize(
    "answer",
    [{"success": False}, {"ok": False}, {"status": "error"}, {"status": "FAILED"}, "Failed: no"],
)
def test_a_goal_that_says_it_failed_was_not_reached(answer: Any) -> None:
    report = plainly(LOGIN, BALANCE, (*PAY[:2], answer))
    assert report.score_card.outcome == "abandoned"
    assert plainly(LOGIN, BALANCE, (*PAY[:2], None)).score_card.outcome == "abandoned"
    assert plainly(LOGIN, BALANCE, PAY).score_card.outcome == "completed"


def test_a_guarded_action_without_an_approval_on_record() -> None:
    report = plainly(LOGIN, BALANCE, PAY, book=APPROVED)
    assert not report.findings
    assert [one.explanation for one in report.not_judged] == [
        "an approval of `pay` (required: 2 from boss, auditor)"
    ]
    refused = (*PAY[:2], {"error": "ask your boss"})
    assert plainly(LOGIN, BALANCE, refused, book=APPROVED).clean


def test_a_guarded_action_that_no_procedure_carries_out_is_an_error() -> None:
    book = load_handbook(
        HANDBOOK.replace(
            "actions:\n", "actions:\n  wipe: {input: {user: string}, irreversible: true}\n", 1
        )
    )
    report = plainly(LOGIN, BALANCE, ("wipe", {"user": "ann"}, {"done": True}), PAY, book=book)
    # It may have changed what the payment rests on, too.
    assert codes(report) == ["guard-violated", "evidence-stale"]
    assert report.findings[0].severity is Severity.ERROR
    assert "no procedure of the handbook carries it out" in report.findings[0].explanation


# --- refusals -------------------------------------------------------------------------

BEFORE = "[small(amount), logged_in(user), funds(user, amount)]"
BEHIND = "[logged_in(user), funds(user, amount), small(amount)]"
LIMITED = HANDBOOK.replace(
    "procedures:",
    """  small(amount):
    says: At most {amount}.
    verify: arguments
    verdict: amount <= 100
procedures:""",
)


REFUSED_LOGIN = ("login", {"user": "ann", "password": "no"}, {"error": "no"})
WITHOUT_CAUSE = ["refusal-without-cause"]


@pytest.mark.parametrize(
    ("text", "known", "steps", "found"),
    [
        # The user, who was asked, may have no password; that excuses no open gate.
        (HANDBOOK, {"replies": 1}, [], []),
        (HANDBOOK, {"replies": 2}, [LOGIN], WITHOUT_CAUSE),
        # Against everything that was shown.
        (HANDBOOK, {"values": {"amount": 5}}, [LOGIN, BALANCE], WITHOUT_CAUSE),
        (HANDBOOK, {"values": {"amount": 50}}, [LOGIN, BALANCE], []),
        # A goal that needs nothing has no ground to be refused.
        (re.sub(r"\n    requires: \{in_order.*", "", HANDBOOK), {}, [], WITHOUT_CAUSE),
        # A leaf that needs no call excuses nothing, before or behind the others.
        *(
            (LIMITED.replace(IN_ORDER, order), {}, steps, found)
            for order in (BEFORE, BEHIND)
            for steps, found in (
                ([], WITHOUT_CAUSE), ([LOGIN], WITHOUT_CAUSE), ([REFUSED_LOGIN], []),
            )
        ),
    ],
)  # fmt: skip
def test_a_refusal_needs_a_cause_in_what_was_shown(
    text: str, known: dict[str, Any], steps: list[tuple[str, Any, Any]], found: list[str]
) -> None:
    """Only a warning: somebody else's results may be unreadable."""
    refused = replace(read_messages(messages(REQUEST, *steps)), **known)
    report = audit_transcript(load_handbook(text), refused, goal="pay", judge=judge)
    assert codes(report) == found
    assert report.score_card.warnings == len(found)


# --- one value of two, and the negated side ---------------------------------------------

ROOM = """
handbook: rooms
actions:
  login: {input: {user: string}}
  look: {input: {user: string}}
  open_room: {input: {room: string}}
predicates:
  known(user): {says: K., established_by: login(user)}
  frozen(user): {says: F., verify: look(user), verdict: result.frozen}
procedures:
  open_room:
    inputs: {user: string}
    requires: [known(user), {not: frozen(user)}]
"""
OPEN_ROOM = ("open_room", {"room": "r"}, {"done": True})


def entered(*steps: tuple[str, Any, Any]) -> list[str]:
    transcript = read_messages(messages(REQUEST, *steps, OPEN_ROOM))
    book = load_handbook(ROOM)
    return codes(audit_transcript(book, transcript, goal="open_room", judge=judge))


def test_a_value_is_taken_from_a_gate_that_was_opened_for_it_alone() -> None:
    ann, bob = (("login", {"user": name}, {"ok": True}) for name in ("ann", "bob"))
    looked = ("look", {"user": "bob"}, {"frozen": False})
    assert entered(ann, looked) == ["premature-goal", "skipped-check"]
    assert entered(ann, bob, looked) == []


def test_an_answer_that_decides_nothing_is_not_blamed_for_the_negated_side() -> None:
    ann = ("login", {"user": "ann"}, {"ok": True})
    assert entered(ann, ("look", {"user": "ann"}, "prose")) == []
    assert entered(ann, ("look", {"user": "ann"}, {"frozen": True})) == [
        "executed-against-condition"
    ]


@pytest.mark.parametrize("nothing", [None, {"result": None}, "null", {"result": False}], ids=str)
def test_a_login_that_answers_nothing_is_no_finding(nothing: Any) -> None:
    """Whether such an answer means a success, the transcript doesn't say."""
    looked = ("look", {"user": "ann"}, {"frozen": False})
    assert entered(("login", {"user": "ann"}, nothing), looked) == []
