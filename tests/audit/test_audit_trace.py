"""Single findings, on a program that a person can read."""

from __future__ import annotations

from typing import Any

from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Unjudgeable
from sopilot.audit.report import Report
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import (
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Fail,
    Note,
    Operation,
    Return,
    Start,
    UserSaid,
)
from sopilot.trace.redaction import redact

HANDBOOK = """
handbook: desk
actions:
  login: {input: {user: string, password: string}}
  read_balance: {input: {user: string}, requires: logged_in(user)}
  pay:
    input: {user: string, amount: number}
    irreversible: true
    approval: {roles: [boss, auditor], needed: 2, expires: 1h}
predicates:
  logged_in(user):
    says: The user {user} is logged in.
    established_by: login(user, password)
    remedy: Log in with the right password.
  funds(user, amount):
    says: The balance of {user} is at least {amount}.
    verify: read_balance(user)
    verdict: result.balance >= amount
    remedy: Pay in what is missing.
procedures:
  pay:
    says: Pays a bill.
    requires: {in_order: [logged_in(user), funds(user, amount)]}
"""
BOOK = load_handbook(HANDBOOK)
PROGRAMS = {name: one.program for name, one in compile_handbook(BOOK).items()}
MACHINE = Machine(PROGRAMS)


class Desk:
    def __init__(self) -> None:
        self.configuration: Configuration = MACHINE.initial()
        self.events: list[Event] = []
        self.calls = 0

    def do(self, *operations: Operation, actor: str | None = None) -> Desk:
        for operation in operations:
            at = float(len(self.events))
            outcome = MACHINE.step(self.configuration, operation, at=at, actor=actor)
            self.events.extend(outcome.events)
            self.configuration = outcome.configuration
        return self

    def tool(self, action: str, arguments: dict[str, Any], value: Any, *, ok: bool = True) -> Desk:
        self.calls += 1
        name = f"c{self.calls}"
        return self.do(DomainCall(name, action, arguments), DomainResult(name, ok, value))

    def log_in(self) -> Desk:
        self.do(Start("pay", {"user": "ann", "amount": 5}), Call())
        return self.tool("login", {"user": "ann", "password": "x"}, True).do(Return(True))

    def check_funds(self, balance: int = 10, *, holds: bool = True) -> Desk:
        return (
            self.do(Call())
            .tool("read_balance", {"user": "ann"}, {"balance": balance})
            .do(Return(holds))
        )

    def approve(self) -> Desk:
        name = f"c{self.calls + 1}"
        return self.do(
            Decision("approve", name, "ida", "boss"), Decision("approve", name, "joe", "auditor")
        )

    def pay(self) -> Desk:
        return self.tool("pay", {"user": "ann", "amount": 5}, {"done": True})

    def report(self, **options: Any) -> Report:
        return audit_trace(PROGRAMS, self.events, judge=judge, **options)


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_a_clean_run() -> None:
    report = Desk().log_in().check_funds().approve().pay().do(Complete("done")).report()
    assert report.clean
    card = report.score_card
    assert (card.outcome, card.checks, card.evidence_coverage) == ("completed", 2, 1.0)
    assert card.calls_after_goal == 0


def test_a_refusal_carries_cause_evidence_and_remedy() -> None:
    desk = Desk().log_in().check_funds(1, holds=False).do(Fail("too little money"))
    report = desk.report()
    assert report.clean
    assert report.score_card.outcome == "refused"
    (refusal,) = report.refusals
    (cause,) = refusal.causes
    result = next(e for e in desk.events if e.payload.get("value") == {"balance": 1})
    assert cause["predicate"] == "funds"
    assert cause["sentence"] == "The balance of ann is at least 5."
    assert cause["evidence"] == [result.seq]
    assert cause["remedy"] == "Pay in what is missing."


def test_a_finding_names_event_frame_predicate_and_sentence() -> None:
    desk = Desk().log_in().check_funds(1)
    (finding,) = desk.report(ended=False).findings
    assert finding.code == "evidence-contradicts-verdict"
    assert desk.events[finding.seq].kind == "return"
    assert finding.frame == "pay/funds@judge"
    assert finding.predicate == "funds"
    assert finding.sentence == "The balance of ann is at least 5."
    assert finding.severity is Severity.ERROR


def test_a_verdict_is_not_judged_without_a_judge() -> None:
    desk = Desk().log_in().check_funds(1)
    report = audit_trace(PROGRAMS, desk.events, ended=False)
    assert report.clean is None
    assert [one.reason for one in report.not_judged] == [Unjudgeable.NO_JUDGE]


def test_a_premature_goal_lists_what_was_skipped() -> None:
    desk = Desk().log_in().approve().pay()
    found = desk.report(ended=False).findings
    assert [one.code for one in found] == ["premature-goal", "skipped-check", "guard-violated"]
    assert found[1].sentence == "The balance of ann is at least 5."


def test_calls_after_the_goal_are_counted_until_another_process_starts() -> None:
    desk = Desk().log_in().check_funds().approve().pay()
    desk.tool("read_balance", {"user": "ann"}, {"balance": 5}).do(Complete("done"))
    desk.tool("read_balance", {"user": "ann"}, {"balance": 5})
    assert desk.report().score_card.calls_after_goal == 2
    desk.log_in()
    # The next request may need what was read between the two.
    assert desk.report(ended=False).score_card.calls_after_goal == 1


def test_a_gate_may_stay_shut_on_the_users_word() -> None:
    desk = Desk().do(Start("pay", {"user": "ann", "amount": 5}), Call())
    desk.do(UserSaid("I have no password"), Return(False), Fail("not logged in"))
    assert desk.report().clean


def test_the_runtime_may_end_a_process() -> None:
    desk = Desk().log_in().do(Fail("the program was changed"), actor="runtime")
    report = desk.report()
    assert report.clean
    assert report.score_card.outcome == "abandoned"


def test_a_repeated_irreversible_call_of_unknown_outcome() -> None:
    desk = Desk().log_in().check_funds().approve()
    desk.do(DomainCall("c9", "pay", {"user": "ann", "amount": 5}))
    desk.do(Note("outcome_unknown", {"call_id": "c9", "action": "pay"}))
    before = codes(desk.report(ended=False))
    assert before.count("unknown-outcome") == 1
    desk.approve().do(DomainCall(f"c{desk.calls + 1}", "pay", {"user": "ann", "amount": 5}))
    assert codes(desk.report(ended=False)).count("unknown-outcome") == 2


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
