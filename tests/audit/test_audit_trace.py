"""Single findings, on a program that a person can read."""

from __future__ import annotations

from typing import Any

import pytest
from audit_desk import HANDBOOK, PROGRAMS, Desk, codes

from small_desks import programs_of
from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Unjudgeable
from sopilot.audit.report import Report
from sopilot.handbook.expressions import judge
from sopilot.trace.chain import genesis, seal_all
from sopilot.trace.events import Call, Complete, Fail, Note, Return, Start
from sopilot.trace.redaction import redact


def test_a_clean_run() -> None:
    report = Desk().log_in().check_funds().approve().pay().do(Complete("done")).report()
    assert report.clean
    card = report.score_card
    assert (card.outcome, card.checks, card.evidence_coverage) == ("completed", 2, 1.0)
    assert card.calls_after_goal == 0


def test_a_verdict_is_not_judged_without_a_judge() -> None:
    desk = Desk().log_in().check_funds(1)
    report = audit_trace(PROGRAMS, desk.events, ended=False)
    assert report.clean is None
    assert [one.reason for one in report.not_judged] == [Unjudgeable.NO_JUDGE]


def test_calls_after_the_goal_are_counted_until_another_process_starts() -> None:
    desk = Desk().log_in().check_funds().approve().pay()
    desk.tool("read_balance", {"user": "ann"}, {"balance": 5}).do(Complete("done"))
    desk.tool("read_balance", {"user": "ann"}, {"balance": 5})
    assert desk.report().score_card.calls_after_goal == 2
    desk.log_in()
    # The next request may need what was read between the two.
    assert desk.report(ended=False).score_card.calls_after_goal == 1


def test_the_runtime_may_end_a_process() -> None:
    desk = Desk().log_in().do(Fail("the program was changed"), actor="runtime")
    report = desk.report()
    assert report.clean
    assert report.score_card.outcome == "abandoned"


def test_a_trace_that_is_sealed_in_part_has_no_chain() -> None:
    events = Desk().log_in().events
    sealed = list(seal_all(events, genesis("s")))
    for entries, whole in ((sealed, True), ([*sealed[:2], *events[2:]], None), (events, None)):
        report = audit_trace(PROGRAMS, entries, session_id="s", judge=judge)
        assert report.score_card.chain is whole


def test_a_session_under_way_misses_nothing_yet() -> None:
    desk = Desk().log_in().check_funds().approve().pay()
    assert codes(desk.report()) == ["goal-without-completion"]
    assert desk.report(ended=False).clean


def test_a_redacted_trace_is_audited_without_its_values() -> None:
    desk = Desk().log_in().check_funds().approve().pay().do(Complete("done"))
    hidden = [redact(e, names=frozenset({"user", "password", "balance"}))[0] for e in desk.events]
    report = audit_trace(PROGRAMS, hidden, judge=judge)
    assert (report.findings, report.clean) == ((), None)
    assert [one.action for one in report.not_judged][-1] == "pay"


def test_a_withheld_argument_object_is_not_judged() -> None:
    desk = Desk().log_in()
    hidden = [redact(e, limit=2)[0] for e in desk.events]
    report = audit_trace(PROGRAMS, hidden, ended=False)
    assert (codes(report), report.clean) == ([], None)


@pytest.mark.parametrize("reconnected", [False, True])
def test_an_approval_does_not_outlive_the_connection_that_it_was_given_on(
    reconnected: bool,
) -> None:
    desk = Desk().log_in().check_funds()
    desk.tool("read_balance", {"user": "ann"}, {"error": "timeout"}, ok=False)
    call, arguments = f"c{desk.calls + 1}", {"user": "ann", "amount": 5}
    held = {"call_id": call, "action": "pay", "arguments": arguments, "awaits": "approval"}
    desk.do(Note("held_call", {**held, "why": "the balance is unknown"}), actor="runtime")
    if reconnected:
        changed = {"upstream": "bank", "connection": "2", "actions": ["read_balance"]}
        desk.do(Note("connected", changed), actor="runtime")
    report = desk.approve().pay().report(ended=False)
    assert ("evidence-superseded" in codes(report)) is reconnected
    assert bool(report.overrides) is not reconnected


@pytest.mark.parametrize(("action", "severity"), [("login", "error"), ("read_balance", "note")])
def test_a_stray_call_is_harmless_only_if_it_reads_and_opens_nothing(
    action: str, severity: str
) -> None:
    quiet = HANDBOOK.replace("login: {", "login: {changes: [], ")
    quiet = quiet.replace("read_balance: {", "read_balance: {changes: [], ")
    given = {"user": "bob", **({"password": "y"} if action == "login" else {})}
    report = Desk(programs_of(quiet)).log_in().tool(action, given, True).report(ended=False)
    assert [(one.code, one.severity) for one in report.findings] == [("unlicensed-call", severity)]


SHUT = """
handbook: door
actions:
  enter: {input: {user: string}}
  ban: {input: {user: string}}
predicates:
  banned(user): {says: B., established_by: ban(user)}
procedures:
  enter: {requires: {not: banned(user)}}
"""


def test_a_gate_that_must_be_shut_is_compared_with_the_guard_once() -> None:
    desk = Desk(programs_of(SHUT)).do(Start("enter", {"user": "ann"}), Call(), Return(False))
    assert desk.report(ended=False).clean
    returned = desk.events[-1]
    desk.events[-1] = returned._replace(payload={**returned.payload, "grade": "perfect"})
    assert codes(desk.report(ended=False)) == ["guard-disagrees"]


# --- *true* that rests on nothing ---------------------------------------------------------


def judged(*answers: tuple[bool, Any], holds: bool, **options: Any) -> Report:
    """`funds` judged after these answers of `read_balance`."""
    desk = Desk().log_in().do(Call())
    for ok, value in answers:
        desk.tool("read_balance", {"user": "ann"}, value, ok=ok)
    return desk.do(Return(holds)).report(ended=False, **options)


FAILED = (False, {"error": "timeout"})
UNREADABLE = [None, "the balance is 10, trust me", {"amount": 10}, [10]]


@pytest.mark.parametrize("answer", [FAILED, *((True, value) for value in UNREADABLE)])
def test_false_may_rest_on_a_failure(answer: tuple[bool, Any]) -> None:
    assert judged(answer, holds=False).clean


def test_without_a_machine_verdict_a_success_is_the_models_to_judge() -> None:
    report = judged((True, "prose"), holds=True, judge=None)
    assert (report.findings, report.clean) == ((), None)
    failed = judged(FAILED, holds=True, judge=None)
    assert [finding.code for finding in failed.findings] == ["unproven-verdict"]
