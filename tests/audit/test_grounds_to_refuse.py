"""Grounds to refuse that lie in the calls, and reading once more what was read: case by case."""

from __future__ import annotations

from typing import Any

import pytest

from sopilot.audit.audit import audit_trace
from sopilot.audit.refusals import DEEPEST, Grounds
from sopilot.audit.requirement import Proof, support
from sopilot.audit.transcript_files import Transcript, TranscriptCall
from sopilot.audit.transcripts import audit_transcript
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge as cel
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import All, Leaf, Name, Path
from sopilot.machine.machine import Machine
from sopilot.trace.events import (
    Call,
    DomainCall,
    DomainResult,
    Event,
    Operation,
    Return,
    Start,
    UserSaid,
)

USER = (("user", Name("user")),)


def chain(length: int) -> Handbook:
    """Each verifier needs what the next one checks; the last needs nothing."""
    predicates, actions = {}, {"pay": Action("pay", (Input("user"),))}
    for number in range(length):
        look = ActionCall(f"look{number}", USER)
        predicates[f"p{number}"] = Predicate(f"p{number}", ("user",), recipes=((look,),))
        more = {"requires": Leaf(f"p{number + 1}", USER)} if number + 1 < length else {}
        actions[look.action] = Action(look.action, (Input("user"),), **more)
    pay = Procedure("pay", "pay", Leaf("p0", USER), arguments=USER)
    return Handbook("chain", actions=actions, predicates=predicates, procedures={"pay": pay})


def test_how_deep_is_looked() -> None:
    """What lies deeper may have been what forbade it."""
    for length, exist in ((1, False), (DEEPEST, False), (DEEPEST + 1, True), (DEEPEST + 5, True)):
        book = chain(length)
        proof, nothing = Proof(book), Transcript((), 1)
        grounds = Grounds(proof, nothing, book.procedures["pay"].requires, 0)
        assert grounds.exist() is exist, length
        assert grounds.nothing_shown() is True


DESK = """
handbook: desk
actions:
  login: {input: {user: string, pass_word: string}}
  look: {input: {user: string}, requires: known(user)}
  peek: {input: {user: string}}
  pay: {input: {user: string}}
predicates:
  known(user): {says: K., established_by: 'login(user, pass_word)'}
  fine(user): {says: F., verify: look(user), verdict: result.ok, remedy: Mend it.}
  good(user): {says: G., verify: {any: [peek(user), look(user)]}, verdict: result.ok}
  small(user): {says: S., verify: arguments, verdict: user == 'ann'}
  nice(user): {says: N., verify: arguments}
procedures:
  pay: {requires: fine(user)}
"""
BOOK = load_handbook(DESK)


def made(index: int, action: str, value: Any = None, *, ok: bool = True) -> TranscriptCall:
    given = {"user": "ann", **({"pass_word": "x"} if action == "login" else {})}
    return TranscriptCall(index, index, action, given, ok, value, answered=True, let_through=ok)


def grounds_of(
    names: str, *calls: TranscriptCall, offered: Any = None, guessing: bool = False, **known: Any
) -> Grounds:
    tree = All(tuple(Leaf(name, USER) for name in names.split()))
    proof = Proof(BOOK, cel, made=list(calls))
    return Grounds(proof, Transcript(calls, 9, **known), tree, 9, offered, guessing)


YES, NO = {"ok": True}, {"ok": False}


@pytest.mark.parametrize(
    ("names", "calls", "known", "exist", "nothing"),
    [
        ("", [], {}, False, False),
        ("good", [], {}, False, True),
        ("good", [("peek", YES)], {}, False, False),
        ("good", [("peek", NO)], {}, True, False),
        ("good", [("peek", "what?")], {}, True, False),
        ("good", [], {"replies": 1}, False, False),
        ("good", [], {"offered": ["look", "login"]}, False, True),
        ("good", [], {"offered": ["login"]}, True, True),
        ("known", [], {}, False, True),
        ("known", [], {"replies": 1}, True, False),
        ("known", [], {"replies": 1, "dialog": "Your PASS please?"}, True, False),
        ("known", [], {"replies": 1, "dialog": "hello"}, False, False),
        ("known", [], {"replies": 1, "dialog": "word", "told": {"pass_word": "x"}}, False, False),
        ("known", [], {"replies": 1, "dialog": "word", "told": {"pass_word": None}}, True, False),
        ("fine", [], {}, False, True),
        ("fine", [("login", False)], {}, False, False),
        ("fine", [("look", NO)], {}, True, False),
        ("small", [], {}, False, False),
        ("small", [], {"told": {"user": "bob"}}, True, False),
        ("nice", [], {}, True, False),
        ("good nice", [], {}, False, False),
        ("good nice", [("peek", YES)], {}, True, False),
        ("nice good", [], {}, True, False),
    ],
)  # fmt: skip
def test_what_may_have_forbidden_it(
    names: str, calls: list[Any], known: dict[str, Any], exist: bool, nothing: bool
) -> None:
    several = [made(number, *one) for number, one in enumerate(calls)]
    grounds = grounds_of(names, *several, **known)
    assert grounds.exist() is exist
    assert grounds.nothing_shown() is nothing


def test_a_guess_is_a_ground_only_for_who_guesses() -> None:
    assert grounds_of("small").exist() is False
    assert grounds_of("small", guessing=True).exist() is True
    assert grounds_of("nice", guessing=True).exist() is True


def test_values_as_calls_used_them_and_the_user_gave_them() -> None:
    one, other = made(0, "peek"), TranscriptCall(1, 1, "peek", {"user": "bob", "a": 1})
    assert grounds_of("", one).values() == {"user": "ann"}
    assert grounds_of("", one, other).values() == {"a": 1}
    assert grounds_of("", one, other, told={"user": "cy", "b": None}).values() == {
        "a": 1, "user": "cy",
    }  # fmt: skip
    bad = TranscriptCall(2, 2, "peek", None)
    assert grounds_of("", bad).values() == {}


def test_causes_with_all_that_is_told_of_them() -> None:
    grounds = grounds_of("fine", made(3, "look", NO))
    assert [dict(one) for one in grounds.causes()] == [
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
        ([], ["look"], [], "the tool `pay` is not on offer"),
        ([], ["pay", "look", "login"], ["refusal-without-cause"], ""),
        ([made(0, "look", NO)], None, ["unlicensed-call", "refusal-without-cause"], ""),
        ([made(0, "login", True), made(1, "look", NO)], None, [], ""),
        ([made(0, "login", True), made(1, "look", YES)], None, ["refusal-without-cause"], ""),
        ([made(0, "login", True), made(1, "look", YES), made(2, "pay")], None, [], None),
    ],
)
def test_a_goal_that_was_not_carried_out(
    calls: list[TranscriptCall], offered: Any, code: list[str], obstacle: str | None
) -> None:
    transcript = Transcript(tuple(calls), 9)
    report = audit_transcript(BOOK, transcript, goal="pay", judge=cel, offered=offered)
    assert [one.code for one in report.findings] == code
    assert [one.obstacle for one in report.refusals] == ([] if obstacle is None else [obstacle])


def test_a_call_that_looks_into_the_answers_of_several() -> None:
    """Of a call for each element the answers are a list, whoever looks into them later."""
    each = ActionCall("leg", (("key", Path("one", ("key",))),), name="legs",
                      each=Path("find", ("ids",)), element="one")  # fmt: skip
    last = ActionCall("last", (("x", Path("legs", (1, "v"))),))
    rule = Predicate("p", ("user",), recipes=((ActionCall("find", USER), each, last),))
    book = Handbook("each", predicates={"p": rule})

    def supported(key: int, x: int) -> bool:
        answers = (
            ("find", {"user": "ann"}, {"ids": [{"key": 1}, {"key": 2}]}),
            ("leg", {"key": 1}, {"v": 5}), ("leg", {"key": key}, {"v": 6}), ("last", {"x": x}, 0),
        )  # fmt: skip
        calls = [
            TranscriptCall(number, number, action, given, True, value, answered=True)
            for number, (action, given, value) in enumerate(answers)
        ]
        return support(book, Leaf("p", USER), {"user": "ann"}, calls) is not None

    assert supported(2, 6) is True
    assert supported(2, 5) is False
    assert supported(3, 6) is False


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
PROGRAMS = {name: one.program for name, one in compile_handbook(load_handbook(READING)).items()}


class Reader:
    def __init__(self) -> None:
        self.machine = Machine(PROGRAMS)
        self.now, self.events = self.machine.initial(), list[Event]()

    def do(self, *operations: Operation, actor: str | None = None) -> Reader:
        for one in operations:
            at = float(len(self.events))
            outcome = self.machine.step(self.now, one, at=at, actor=actor)
            assert outcome.accepted, outcome.answer
            self.now = outcome.configuration
            self.events.extend(outcome.events)
        return self

    def call(self, action: str, user: str = "ann", actor: str | None = None) -> Reader:
        name = f"c{len(self.events)}"
        self.do(DomainCall(name, action, {"user": user}), actor=actor)
        return self.do(DomainResult(name, True, {"ok": True}))

    def found(self) -> list[tuple[int, str]]:
        report = audit_trace(PROGRAMS, self.events, judge=cel, ended=False)
        return [(one.seq, one.code) for one in report.findings]


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
