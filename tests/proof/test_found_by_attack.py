"""Holes that a person found by hand: values that are no JSON, amendments, programs by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import AnsweringTools, AttackDesk, open_desk

from counter_desk import HandClock
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import VerdictError, judge
from sopilot.program.codec import program_from_yaml
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Complete, Fail, Return
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

DOOR = """
handbook: door
actions:
  read_list: {input: {user: string}}
  open_door: {input: {user: string}, irreversible: true}
predicates:
  blocked(user):
    says: The guest {user} is blocked.
    verify: read_list(user)
    verdict: user in result.blocked
procedures:
  open_door: {requires: {not: blocked(user)}}
"""


@pytest.mark.parametrize("blocked", [{"u1"}, frozenset({"u1"}), {"u1": 1}.keys()])
async def test_an_answer_that_is_no_json_decides_nothing(blocked: object) -> None:
    desk = await open_desk(DOOR, lambda name, given: {"blocked": blocked}, "pg")
    await desk.start("open_door", user="u1")
    await desk.push({"read_list": {"user": "u1"}})
    await desk.held("open_door", "`blocked` must be false", "undecided", user="u1")


SEND = """
handbook: send
actions:
  read_account: {input: {user: string}}
  send:
    input: {user: string, amount: {type: number, schema: {type: number, minimum: 0}}}
    irreversible: true
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  send: {requires: covered(user, amount)}
"""


def balance(name: str, given: Mapping[str, JSON]) -> JSON:
    return {"balance": 300} if name == "read_account" else {"done": True}


async def test_an_amended_call_is_what_the_process_is_about() -> None:
    desk = await open_desk(SEND, balance, "pg")
    await desk.start("send", user="a", amount=500)
    await desk.push({"read_account": {"user": "a"}})
    await desk.held("send", "`covered` must be true and is false", user="a", amount=500)
    (held,) = desk.session.held_calls
    amended = {"user": "a", "amount": 200}
    await desk.session.decide("amend", held.call_id, by="dana", role="operator", arguments=amended)
    assert (await desk.session.run_held(held.call_id)).status is CallStatus.DONE
    assert (await desk.call("send", user="a", amount=500)).status is CallStatus.HELD
    assert (await desk.session.operate(Complete())).accepted
    assert desk.made("send") == [amended]


async def test_bounds_of_an_input_hold() -> None:
    desk = await open_desk(SEND, balance, "pg")
    assert not (await desk.start("send", user="a", amount=-5)).accepted
    await desk.start("send", user="a")
    await desk.push({"read_account": {"user": "a"}})
    await desk.held("send", "at least 0", user="a", amount=-5)


async def test_who_refuses_what_was_held_is_not_blamed() -> None:
    left = [300]

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"balance": left[0]} if name == "read_account" else {}

    desk = await open_desk(SEND, answers, "pg")
    await desk.start("send", user="a", amount=200)
    await desk.push({"read_account": {"user": "a"}})
    left[0] = 0
    await desk.call("read_account", user="a")
    await desk.held("send", "`covered` must be true and is false", user="a", amount=200)
    await desk.session.operate(Fail("the account does not cover it any more"))
    report = audit_trace(desk.session.programs.programs, desk.session.events, judge=judge)
    assert report.clean, report.findings


CLAUSES = """
handbook: clauses
actions:
  read_clause: {input: {text: string}}
  sign: {input: {first: string, second: string}, irreversible: true, recheck: true}
predicates:
  legal(text):
    says: The clause is legal.
    verify: read_clause(text)
    verdict: result.legal
procedures:
  sign: {requires: [legal(first), legal(second)]}
"""


async def test_long_values_are_rechecked_one_by_one() -> None:
    first, second = "a" * 1200 + "1", "a" * 1200 + "2"
    legal = {first: True, second: True}

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"legal": legal[given["text"]]} if name == "read_clause" else {}

    desk = await open_desk(CLAUSES, answers, "pg")
    await desk.start("sign", first=first, second=second)
    await desk.push()
    for text in (first, second):
        await desk.call("read_clause", text=text)
    legal[first] = False
    await desk.held("sign", "`legal` must be true and is false", first=first, second=second)


BY_HAND = """
sopilot_program: 1
entry: operate
guarded: [{action: operate}]
types: {user: string}
actions:
  read_patient: {input: {user: string}, changes: []}
  take_consent: {input: {user: string}, changes: []}
  operate: {input: {user: string}, required: [user]}
functions:
  operate:
    kind: process
    parameters: [user]
    steps:
      - {step: first, call: emergency, with: {user: $user}, bind: emergency, met: act}
      - {step: consent, act: take_consent, with: {user: $user}}
      - {step: act, act: operate, with: {user: $user}, goal: true}
      - {step: done, complete: Done.}
  emergency:
    kind: rule
    parameters: [user]
    predicate: emergency
    verdict: result.emergency
    steps:
      - {step: read, act: read_patient, with: {user: $user}}
      - {step: judge, return: null}
"""


@pytest.mark.parametrize("undecided", [True, False])
async def test_what_was_not_done_is_not_passed(undecided: bool) -> None:
    """The executor claims the short way; the long way was never gone."""

    tools = AnsweringTools(lambda name, given: {"emergency": False})
    programs = {"operate": program_from_yaml(BY_HAND)}
    session = await open_session(MemoryStore(), programs, tools=tools, clock=HandClock())
    desk = AttackDesk(session, tools)
    await desk.start("operate", user="u")
    await desk.push({} if undecided else {"read_patient": {"user": "u"}})
    await desk.held("operate", "`emergency` must be true", user="u")


async def test_what_is_undecided_opens_neither_side_of_a_program_by_hand() -> None:
    stop_if = (
        BY_HAND.replace("met: act}", "met: stop, unmet: act}")
        .replace("      - {step: consent, act: take_consent, with: {user: $user}}\n", "")
        .replace("complete: Done.}", "complete: Done.}\n      - {step: stop, fail: No.}")
    )

    tools = AnsweringTools(lambda name, given: {"error": "no"})
    programs = {"operate": program_from_yaml(stop_if)}
    session = await open_session(MemoryStore(), programs, tools=tools, clock=HandClock())
    desk = AttackDesk(session, tools)
    await desk.start("operate", user="u")
    await desk.push()
    await session.operate(Return(undecided=True))
    await desk.held("operate", "emergency", user="u")


@pytest.mark.parametrize("text", ["x < null", "null + 'a' == x", "x > null"])
def test_null_has_no_order_and_no_sum(text: str) -> None:
    with pytest.raises(VerdictError):
        judge(text, {"x": "2026"})


@pytest.mark.parametrize(
    "note", [{"$ref": "x", "bytes": 1}, {"in": [{"$ref": "x", "bytes": 1}]}, {"n": float("nan")}]
)
async def test_a_tool_that_cannot_be_undone_gets_no_stand_in_for_what_was_sent(note: JSON) -> None:
    """What has the form of a withheld value is not kept, and neither is what JSON cannot say."""
    text = DOOR.replace(
        "input: {user: string}, irreversible", "input: {user: string, note: object}, irreversible"
    )

    desk = await open_desk(text, lambda name, given: {"blocked": []}, "pg")
    await desk.start("open_door", user="u1", note=note)
    await desk.push({"read_list": {"user": "u1"}})
    answer = await desk.call("open_door", user="u1", note=note)
    assert answer.status is CallStatus.HELD
    assert desk.made("open_door") == []
    assert "no tool may be given" in answer.problem
