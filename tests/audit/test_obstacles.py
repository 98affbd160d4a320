"""Refusals of a goal that no requirement forbids: what counts as a cause."""

from __future__ import annotations

import pytest
from audit_desk import Desk, codes

from sopilot.audit.text import render_text
from sopilot.trace.events import AssistantSaid, Call, Decision, Fail, Note, Start, UserSaid

PAY = {"user": "ann", "amount": 5}
NOT_OFFERED = Note("not_offered", {"actions": ["pay"]})


def ready() -> Desk:
    return Desk().log_in().check_funds().approve()


def test_a_goal_that_is_not_on_offer_may_be_refused() -> None:
    report = Desk().do(NOT_OFFERED).log_in().check_funds().do(Fail("no such tool")).report()
    assert report.clean
    assert report.score_card.outcome == "refused"
    assert report.refusals[0].obstacle == "the tool `pay` isn't offered"
    assert "    could not be carried out: the tool `pay` isn't offered" in render_text(report)


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


REJECT = ("reject", "ida", "boss")


@pytest.mark.parametrize(
    ("decision", "caused"),
    [
        (REJECT, True),
        (("approve", "ida", "boss"), False),
        (("reject", "", "boss"), False),
        (("reject", "ida", "passer-by"), False),
    ],
)
def test_who_was_turned_down_by_somebody_entitled_may_be_refused(
    decision: tuple[str, str, str], caused: bool
) -> None:
    word, by, role = decision
    desk = ready().do(Decision(word, "c3", by, role)).do(Fail("not allowed"))
    assert (codes(desk.report()) == []) is caused


@pytest.mark.parametrize(
    ("actor", "then", "caused"),
    [
        ("runtime", (), True),
        ("model", (), False),
        ("runtime", (Decision("approve", "c4", "ida", "boss"),), False),
    ],
)
def test_who_was_given_no_answer_in_time_may_be_refused(
    actor: str, then: tuple[Decision, ...], caused: bool
) -> None:
    desk = ready().do(Decision("expire", "c3", reason="the approval expired"), actor=actor)
    desk = desk.do(*then).do(Fail("nobody decides"))
    assert ("refusal-without-cause" not in codes(desk.report())) is caused


def test_what_was_turned_down_in_another_process_is_no_excuse() -> None:
    desk = ready().do(Decision("reject", "c3", "ida", "boss"), Fail("not allowed"))
    desk.log_in().check_funds().do(Fail("again"))
    assert codes(desk.report()) == ["refusal-without-cause"]


@pytest.mark.parametrize(
    ("actor", "found"),
    [("model", True), ("machine", True), ("user", False), ("operator", False), ("runtime", False)],
)
def test_only_who_carries_it_out_needs_a_cause(actor: str, found: bool) -> None:
    report = ready().do(Fail("so"), actor=actor).report()
    assert ("refusal-without-cause" in codes(report)) is found
    assert [one.reason for one in report.refusals] == ["so"]


def test_whose_goal_was_carried_out_refuses_nothing() -> None:
    report = ready().approve().pay().do(Fail("so")).report()
    assert "refusal-without-cause" not in codes(report)


@pytest.mark.parametrize(("answers", "obstacle"), [("x", True), ("xo", False), ("o", False)])
def test_a_check_whose_verifier_failed_is_an_obstacle(answers: str, obstacle: bool) -> None:
    """Unless it was answered after all."""
    desk = Desk().log_in().do(Call())
    for one in answers:
        desk.tool("read_balance", {"user": "ann"}, {"balance": 9}, ok=one == "o")
    report = desk.do(Fail("cannot tell")).report()
    assert (codes(report) == []) is obstacle
    said = "`read_balance` failed (#7), so `funds` is undecided"
    assert [one.obstacle for one in report.refusals] == [said if obstacle else ""]


@pytest.mark.parametrize(
    ("asked", "heard", "obstacle"),
    [
        ("Which user?", "no idea", True),
        ("WHICH USER?", "no idea", True),
        ("Which account?", "no idea", False),
        ("Which user?", "My user is private", False),
    ],
)
def test_what_the_user_was_asked_for_and_did_not_give(
    asked: str, heard: str, obstacle: bool
) -> None:
    desk = Desk().do(Start("pay", {"amount": 5}), AssistantSaid(asked), UserSaid(heard))
    report = desk.do(Fail("no user")).report()
    assert (codes(report) == []) is obstacle
    said = "the user was asked and did not give `user`"
    assert [one.obstacle for one in report.refusals] == [said if obstacle else ""]
