"""Holes in the newer constructs that an attacker found: words, moments, people, numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from attack_desk import AttackDesk, open_desk

from sopilot.handbook.expressions import VerdictError, judge
from sopilot.handbook.reader import load_handbook
from sopilot.messages.errors import UserMistake
from sopilot.session.questions import UserAnswer
from sopilot.trace.events import Amend
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus


def answering(desk: AttackDesk, words: Sequence[str]) -> list[str]:
    left, asked = list(words), []

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        asked.append(question)
        await desk.session.assistant_said(question)
        outcome = await desk.session.user_said(left[0])
        return UserAnswer(left.pop(0), outcome.events[0].seq)

    desk.session.asker = ask
    return asked


TWO_TEXTS = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  cancel: {input: {booking: string}, irreversible: true}
predicates:
  free(booking): {says: "free", verify: read_booking(booking), verdict: result.free}
procedures:
  cancel_free: {action: cancel, requires: free(booking), confirm: "You get all your money back."}
  cancel_late: {action: cancel, requires: {not: free(booking)}, confirm: "You get nothing back."}
"""


async def test_the_user_is_shown_the_words_of_the_procedure_that_runs() -> None:
    desk = await open_desk(TWO_TEXTS, lambda name, given: {"free": False}, "pg")
    asked = answering(desk, ["yes", "yes"])
    about = {"action": "cancel", "booking": "b"}
    await desk.start("cancel_late", booking="b")
    await desk.call("read_booking", booking="b")
    await desk.call("confirm_with_user", **about, procedure="cancel_free")
    await desk.push({"read_booking": {"booking": "b"}})
    await desk.held("cancel", "confirm", booking="b")
    await desk.start_anew("cancel_late", booking="b")
    own = {**about, "procedure": "cancel_late"}
    await desk.push({"read_booking": {"booking": "b"}, "confirm_with_user": own})
    assert "nothing back" in asked[-1]
    assert (await desk.call("cancel", booking="b")).status is CallStatus.DONE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("round(12345678.91, 2)", 12345678.91),
        ("round(1.005, 2)", 1.01),
        ("round(-2.5, 0)", -3),
        ("round(9007199254740993, 0)", 9007199254740993),
        ("round(0.4999999999, 0)", 0),
    ],
)
def test_money_is_rounded_as_it_is_written(text: str, value: float) -> None:
    assert judge(f"{text} == {value}", {}) is True


@pytest.mark.parametrize("text", ["nan", "-inf", "inf"])
@pytest.mark.parametrize("compared", ["> 1000.0", "== 5.0", "in [1.0, 2.0]"])
def test_what_is_no_number_decides_nothing(text: str, compared: str) -> None:
    with pytest.raises(VerdictError):
        judge(f"double(amount) {compared}", {"amount": text})


TWO_WAYS = """
handbook: x
actions:
  read_account: {input: {user: string}}
  note: {input: {text: string}, changes: []}
  withdraw: {input: {user: string, amount: number}}
  pay: {input: {user: string, amount: number}, irreversible: true}
predicates:
  covered(user, amount):
    says: "It covers {amount}."
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  pay: {requires: covered(user, amount)}
  withdraw: {requires: covered(user, amount)}
"""


async def test_nothing_overtakes_a_guarded_call_that_is_under_way() -> None:
    balance = {"now": 500}
    reached = asyncio.Event()

    async def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "pay":
            reached.set()
            await asyncio.sleep(0.05)
        if name in ("pay", "withdraw"):
            balance["now"] -= 500
            assert balance["now"] >= 0, "the world denies it"
        return {"balance": balance["now"]}

    desk = await open_desk(TWO_WAYS, world, "pg")
    await desk.start("pay", user="a", amount=500)
    await desk.push({"read_account": {"user": "a"}})
    paying = asyncio.create_task(desk.call("pay", user="a", amount=500))
    await reached.wait()
    held = await desk.call("withdraw", user="a", amount=500)
    assert held.status is CallStatus.HELD
    assert "`pay` is being carried out" in held.problem
    assert (await desk.call("note", text="quiet")).status is CallStatus.DONE
    assert (await paying).status is CallStatus.DONE
    assert desk.made("withdraw") == []
    assert balance["now"] == 0


def test_a_failure_that_answers_opens_no_gate() -> None:
    for way in ("established_by", "done"):
        with pytest.raises(UserMistake, match="gate-not-found"):
            load_handbook(
                f"""
handbook: x
actions:
  find: {{input: {{user: string}}, not_found: "result.error == 'none'"}}
  pay: {{input: {{user: string}}, irreversible: true}}
predicates:
  known(user): {{says: known, {way}: find(user)}}
procedures:
  pay: {{requires: known(user)}}
"""
            )


LOCKED = """
handbook: x
actions:
  lock: {input: {user: string}}
  unlock: {input: {user: string}}
  read_account: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  unlocked(user): {says: unlocked, established_by: unlock(user), closed_by: lock(user)}
  active(user): {says: active, verify: read_account(user), verdict: result.active}
procedures:
  pay: {requires: active(user)}
"""


async def test_what_opens_or_shuts_a_gate_may_change_what_was_read() -> None:
    state = {"active": True}

    def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "lock":
            state["active"] = False
        return dict(state)

    desk = await open_desk(LOCKED, world, "pg")
    await desk.start("pay", user="u")
    await desk.push({"read_account": {"user": "u"}})
    await desk.call("lock", user="u")
    await desk.held("pay", "must be called again", user="u")


THEIRS = """
handbook: x
actions:
  read_booking: {input: {booking: string}}
  pay:
    input: {user: string, amount: number}
    irreversible: true
    approval: {roles: [clerk, manager], needed: 2, when: amount > 1000}
predicates:
  theirs(user, booking):
    says: theirs
    verify: read_booking(booking)
    verdict: result.owner == user
procedures:
  pay: {inputs: {booking: string}, requires: "theirs(user, booking)"}
"""


async def test_who_approved_without_proof_approved_these_values() -> None:
    desk = await open_desk(THEIRS, lambda name, given: {"owner": "eve"}, "pg")
    await desk.start("pay", user="a", amount=100, booking="b1")
    await desk.push({"read_booking": {"booking": "b1"}})
    await desk.call("pay", user="a", amount=100)
    (held,) = desk.session.held_calls
    await desk.session.decide("approve", held.call_id, by="Clara", role="clerk")
    assert (await desk.session.operate(Amend({"booking": "b2"}))).accepted
    await desk.push({"read_booking": {"booking": "b2"}})
    assert (await desk.call("pay", user="a", amount=100)).status is CallStatus.HELD


async def test_what_people_make_of_a_call_needs_as_many_of_them() -> None:
    desk = await open_desk(THEIRS, lambda name, given: {"owner": "eve"}, "pg")
    await desk.start("pay", user="a", amount=100, booking="b1")
    await desk.push({"read_booking": {"booking": "b1"}})
    await desk.call("pay", user="a", amount=100)
    (held,) = desk.session.held_calls
    more = {"user": "a", "amount": 50_000}
    held = await desk.session.decide(
        "amend", held.call_id, by="Clara", role="clerk", arguments=more
    )
    assert (await desk.session.run_held(held.call_id)).status is CallStatus.HELD
    assert not desk.made("pay")


BADGE = """
handbook: x
actions:
  login: {input: {user: {type: string, required: false}, badge: {type: string, required: false}}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  known(user): {says: known, established_by: "login(user)", principal: true}
procedures:
  pay: {requires: known(user)}
"""


async def test_a_login_that_names_nobody_may_be_anybodys() -> None:
    desk = await open_desk(BADGE, lambda name, given: {}, "pg")
    await desk.start("pay", user="ann")
    await desk.push({"login": {"user": "ann"}})
    await desk.call("login", badge="77")
    await desk.held("pay", "`known` must be true", "undecided", user="ann")
