"""Refusals of a goal that no requirement forbids: what counts as a cause."""

from __future__ import annotations

from test_audit_trace import Desk, codes

from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.vm import Fail, Note

PAY = {"user": "ann", "amount": 5}
NOT_OFFERED = Note("not_offered", {"actions": ["pay"]})


def ready() -> Desk:
    return Desk().log_in().check_funds().approve()


def test_a_goal_that_is_not_on_offer_may_be_refused() -> None:
    report = Desk().do(NOT_OFFERED).log_in().check_funds().do(Fail("no such tool")).report()
    assert report.clean
    assert report.score_card.outcome == "refused"
    assert report.refusals[0].obstacle == "`pay` is not on offer"
    assert "    could not be carried out: `pay` is not on offer" in render_text(report)


def test_only_where_the_program_asks_for_it() -> None:
    report = Desk().do(NOT_OFFERED).log_in().do(Fail("no such tool")).report()
    assert codes(report) == ["refusal-without-cause"]


def test_another_tool_is_no_excuse() -> None:
    other = Note("not_offered", {"actions": ["refund"]})
    report = Desk().do(other).log_in().check_funds().do(Fail("no such tool")).report()
    assert codes(report) == ["refusal-without-cause"]


def test_only_the_runtime_knows_what_is_on_offer() -> None:
    report = Desk().do(NOT_OFFERED, actor="model").log_in().check_funds().do(Fail("no")).report()
    assert codes(report) == ["refusal-without-cause"]


def test_a_goal_that_failed_may_be_refused() -> None:
    report = ready().tool("pay", PAY, "no", ok=False).do(Fail("it failed")).report()
    assert report.clean
    assert report.refusals[0].obstacle == "`pay` failed (#12)"


def test_a_failure_before_acceptance_is_no_excuse() -> None:
    desk = Desk().log_in().tool("pay", PAY, "no", ok=False).check_funds()
    assert "refusal-without-cause" in codes(desk.do(Fail("it failed")).report())


def test_a_failure_for_somebody_else_is_no_excuse() -> None:
    other = {"user": "bob", "amount": 5}
    desk = ready().tool("pay", other, "no", ok=False).do(Fail("it failed"))
    assert "refusal-without-cause" in codes(desk.report())
