"""Reading once more what was read: what a process may, and the machine must."""

from __future__ import annotations

from typing import Self

from audit_desk import Desk

from small_desks import programs_of
from sopilot.trace.events import Call, Return, Start, UserSaid

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
