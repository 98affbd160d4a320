"""Refusals of a goal that no requirement forbids: what counts as a cause."""

from __future__ import annotations

import pytest
from audit_desk import Desk, codes

from sopilot.audit.text import render_text
from sopilot.trace.events import (
    AssistantSaid,
    Call,
    Decision,
    Fail,
    Note,
    Return,
    Start,
    UserSaid,
)

NOT_OFFERED = Note("not_offered", {"actions": ["pay"]})


def ready() -> Desk:
    return Desk().log_in().check_funds().approve()


def failing(desk: Desk, user: str = "ann") -> Desk:
    return desk.tool("pay", {"user": user, "amount": 5}, "no", ok=False)


@pytest.mark.parametrize(
    ("desk", "obstacle"),
    [
        (Desk().do(NOT_OFFERED).log_in().check_funds(), "the tool `pay` isn't offered"),
        # Only where the program asks for it, of that very tool, and if the runtime says so.
        (Desk().do(NOT_OFFERED).log_in(), None),
        (Desk().do(Note("not_offered", {"actions": ["refund"]})).log_in().check_funds(), None),
        (Desk().do(NOT_OFFERED, actor="model").log_in().check_funds(), None),
        (failing(ready()), "`pay` failed (#12)"),
        # Neither before acceptance nor for somebody else.
        (failing(Desk().log_in()).check_funds(), None),
        (failing(ready(), "bob"), None),
    ],
)
def test_a_goal_that_cannot_be_carried_out_may_be_refused(desk: Desk, obstacle: str | None) -> None:
    report = desk.do(Fail("no such tool")).report()
    assert ("refusal-without-cause" in codes(report)) is (obstacle is None)
    assert report.score_card.outcome == "refused"
    assert report.refusals[0].obstacle == (obstacle or "")
    if obstacle is not None:
        assert report.clean
        assert f"    could not be carried out: {obstacle}" in render_text(report)


@pytest.mark.parametrize(("user", "caused"), [("ann", True), ("bob", False)])
def test_a_check_that_cannot_be_made_is_about_the_same_values(user: str, caused: bool) -> None:
    desk = Desk().log_in().do(Call())
    report = desk.tool("read_balance", {"user": user}, "busy", ok=False).do(Fail("no")).report()
    assert ("refusal-without-cause" in codes(report)) is not caused
    assert report.refusals[0].obstacle.startswith("`read_balance` failed") is caused


def test_whose_goal_was_carried_out_refuses_nothing() -> None:
    report = ready().approve().pay().do(Fail("so")).report()
    assert "refusal-without-cause" not in codes(report)


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


@pytest.mark.parametrize(
    ("answers", "obstacle"), [("x", True), ("xo", False), ("o", False), ("l", False)]
)
def test_a_check_whose_verifier_failed_is_an_obstacle(answers: str, obstacle: bool) -> None:
    """Unless it was answered after all, or another call failed: `l` is a login."""
    desk = Desk().log_in().do(Call())
    for one in answers:
        action, more = ("login", {"password": "x"}) if one == "l" else ("read_balance", {})
        desk.tool(action, {"user": "ann", **more}, {"balance": 9}, ok=one == "o")
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


@pytest.mark.parametrize(("answers", "opened"), [((True, "no"), False), (("no", True), True)])
def test_of_two_answers_of_a_login_the_newest_counts(
    answers: tuple[object, object], opened: bool
) -> None:
    desk = Desk().do(Start("pay", {"user": "ann", "amount": 5}), Call())
    for answer in answers:
        desk.tool("login", {"user": "ann", "password": "x"}, answer)
    report = desk.do(Return(True)).report(ended=False)
    assert ("unproven-verdict" in codes(report)) is not opened
