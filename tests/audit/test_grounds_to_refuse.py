"""Grounds to refuse that lie in the calls, and reading once more what was read: case by case."""

from __future__ import annotations

import json
from typing import Any, Self

import pytest
from audit_desk import Desk

from small_desks import programs_of
from sopilot.audit.refusals import Grounds
from sopilot.audit.state import SessionCall
from sopilot.audit.transcript_files import Transcript
from sopilot.audit.transcript_reading import Reading
from sopilot.audit.transcripts import Review
from sopilot.handbook.expressions import judge as cel
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import All, Leaf, Name
from sopilot.trace.events import Call, Return, Start, UserSaid

USER = (("user", Name("user")),)


DESK = """
handbook: desk
actions:
  login: {input: {user: string, pass_word: string}}
  look: {input: {user: string}, requires: known(user)}
  peek: {input: {user: string}}
  pay: {input: {user: string}}
  give: {input: {user: string}}
predicates:
  known(user): {says: K., established_by: 'login(user, pass_word)'}
  fine(user): {says: F., verify: look(user), verdict: result.ok, remedy: Mend it.}
  good(user): {says: G., verify: {any: [peek(user), look(user)]}, verdict: result.ok}
  small(user): {says: S., verify: arguments, verdict: user == 'ann'}
  nice(user): {says: N., verify: arguments}
procedures:
  pay: {requires: fine(user)}
  give: {requires: [known(user), good(user), small(user), nice(user)]}
"""
BOOK = load_handbook(DESK)


def made(index: int, action: str, value: Any = None, *, ok: bool = True) -> SessionCall:
    given = {"user": "ann", **({"pass_word": "x"} if action == "login" else {})}
    return SessionCall(index, action, given, answered=index, ok=ok, value=value, message=index)


def grounds_of(
    names: str, *calls: SessionCall, offered: Any = None, guessing: bool = False, **known: Any
) -> Grounds:
    tree = All(tuple(Leaf(name, USER) for name in names.split()))
    proof = Reading(BOOK, cel, calls=list(calls))
    return Grounds(proof, Transcript(calls, **known), tree, offered, guessing)


YES, NO = {"ok": True}, {"ok": False}


def test_causes_with_all_that_is_told_of_them() -> None:
    grounds = grounds_of("fine", made(3, "look", NO))
    assert json.loads(json.dumps(grounds.causes())) == [
        {
            "predicate": "fine", "sentence": "F.", "found": "It is not the case that: F.",
            "holds": False, "evidence": [3], "return": None, "remedy": "Mend it.",
            "customer_message": "",
        }
    ]  # fmt: skip
    assert grounds_of("fine", made(3, "look", YES)).causes() == []


@pytest.mark.parametrize(
    ("calls", "offered", "code", "obstacle"),
    [
        ([], None, ["refusal-without-cause"], ""),
        ([], ["look"], [], "the tool `pay` isn't offered"),
        ([], ["pay", "look", "login"], ["refusal-without-cause"], ""),
        ([made(0, "look", NO)], None, ["unlicensed-call", "refusal-without-cause"], ""),
        ([made(0, "login", True), made(1, "look", NO)], None, [], ""),
        ([made(0, "login", True), made(1, "look", YES)], None, ["refusal-without-cause"], ""),
        ([made(0, "login", True), made(1, "look", YES), made(2, "pay")], None, [], None),
    ],
)
def test_a_goal_that_was_not_carried_out(
    calls: list[SessionCall], offered: Any, code: list[str], obstacle: str | None
) -> None:
    transcript = Transcript(tuple(calls))
    review = Review(Reading(BOOK, cel), transcript, ["pay"], offered=offered)
    review.judge_calls()
    if not review.attempted("pay"):
        review.judge_refusal("pay", frozenset())
    report = review.report(None)
    assert [one.code for one in report.findings] == code
    assert [one.obstacle for one in report.refusals] == ([] if obstacle is None else [obstacle])


# --- reading once more ------------------------------------------------------------------

READING = """
handbook: reading
actions:
  look: {input: {user: string}, read_only: true}
  peek: {input: {user: string}, read_only: true}
  gaze: {input: {user: string}, read_only: true}
  pay: {input: {user: string}, irreversible: true}
  give: {input: {user: string}, irreversible: true, recheck: true}
predicates:
  fine(user): {says: F., verify: look(user), verdict: result.ok}
  good(user): {says: G., verify: peek(user), verdict: result.ok}
procedures:
  pay: {requires: {in_order: [fine(user), good(user)]}}
  give: {requires: good(user)}
"""
PROGRAMS = programs_of(READING)


class Reader(Desk):
    def __init__(self) -> None:
        super().__init__(PROGRAMS)

    def call(self, action: str, user: str = "ann", actor: str | None = None) -> Self:
        return self.tool(action, {"user": user}, {"ok": True}, actor=actor)

    def found(self) -> list[tuple[int, str]]:
        return [(one.seq, one.code) for one in self.report(ended=False).findings]


def test_reading_again_what_a_check_of_this_process_asked_for() -> None:
    reader = Reader().do(Start("pay", {"user": "ann"}), Call()).call("look").do(Return(True))
    reader.do(Call()).call("look")
    assert reader.found() == []
    here = len(reader.events)
    reader.call("look", "bob")
    assert reader.found() == [(here, "unlicensed-call")]
    reader.call("look", "bob")  # what nobody asked for before is no reading again
    assert reader.found() == [(here, "unlicensed-call"), (here + 2, "unlicensed-call")]
    reader.call("look", "bob", actor="machine")
    assert len(reader.found()) == 2


def test_what_another_process_asked_for_is_nobody_elses() -> None:
    reader = Reader().do(Start("pay", {"user": "ann"}), Call()).call("look").do(Return(True))
    reader.do(Start("give", {"user": "ann"}), Call())
    here = len(reader.events)
    reader.call("look")
    assert reader.found() == [(here, "unlicensed-call")]


def test_at_the_act_all_that_it_rests_on_may_be_read_again() -> None:
    reader = Reader().do(Start("pay", {"user": "ann"}), Call()).call("look").do(Return(True))
    reader.do(Call()).call("peek").do(Return(True))
    for action in ("look", "peek"):
        reader.call(action)
    assert reader.found() == []
    here = len(reader.events)
    reader.call("peek", "bob").call("gaze")
    assert reader.found() == [(here, "unlicensed-call"), (here + 2, "unlicensed-call")]


def test_what_the_machine_reads_again_just_before() -> None:
    """A model that reads again is believed by nobody who asked for the machine's own reading."""

    def given() -> Reader:
        reader = Reader().do(Start("give", {"user": "ann"}), Call())
        return reader.call("peek").do(Return(True))

    def codes(reader: Reader) -> list[str]:
        return [code for _, code in reader.found()]

    assert codes(given().call("give")) == ["not-read-again"]
    assert codes(given().call("peek").call("give")) == ["not-read-again"]
    assert codes(given().call("peek", actor="machine").call("give")) == []
    later = given().call("peek", actor="machine").do(UserSaid("well?")).call("give")
    assert codes(later) == ["not-read-again"]
