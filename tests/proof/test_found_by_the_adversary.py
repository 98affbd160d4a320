"""Holes that the campaign found in the guard's first version, each as short as it could be made.

All were data flow again: calls that overlap, that broke off, that name too much; amendments; one
name for two things; an evidence that is old when it comes; a number that a double cannot hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from attack_desk import AttackDesk, open_desk
from attacked_handbooks import GATE

from sopilot.session.questions import UserAnswer
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

SHUT = GATE.replace("requires: logged_in(user)", "requires: {not: logged_in(user)}")
LOGIN = {"user": "ann", "password": "x"}


async def _slow_desk(handbook: str, slow: str) -> tuple[AttackDesk, asyncio.Event]:
    """The world does what ``slow`` asks at once, and answers when the event is set."""
    answered = asyncio.Event()

    async def later() -> JSON:
        await answered.wait()
        return {"ok": True}

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return later() if name == slow else {"ok": True}

    return await open_desk(handbook, answers, "pg"), answered


async def test_a_login_that_is_answered_after_the_logout_opens_nothing() -> None:
    desk, answered = await _slow_desk(GATE, "login")
    await desk.start("close", user="ann")
    await desk.push()
    login = asyncio.create_task(desk.call("login", **LOGIN))
    await asyncio.sleep(0)
    await desk.call("logout", user="ann")
    answered.set()
    await login
    await desk.held("close", "logged_in", user="ann")
    await desk.call("login", **LOGIN)
    await desk.done("close", user="ann")


async def test_a_gate_is_not_shut_while_a_login_is_awaited() -> None:
    desk, answered = await _slow_desk(SHUT, "login")
    await desk.start("close", user="ann")
    await desk.push()
    login = asyncio.create_task(desk.call("login", **LOGIN))
    await asyncio.sleep(0)
    await desk.held("close", "logged_in", user="ann")
    answered.set()
    await login
    await desk.held("close", "logged_in", user="ann")
    await desk.call("logout", user="ann")
    await desk.done("close", user="ann")


@pytest.mark.parametrize("more", [{"x": 1}, {"at": None}])
async def test_an_argument_too_many_leaves_no_gate_as_it_was(more: dict[str, JSON]) -> None:
    desk = await open_desk(SHUT, lambda name, given: {"ok": True}, "pg")
    await desk.start("close", user="ann")
    await desk.push()
    await desk.call("login", **LOGIN, **more)
    await desk.held("close", "logged_in", user="ann")
    other = await open_desk(GATE, lambda name, given: {"ok": True}, "pg")
    await other.start("close", user="ann")
    await other.push({"login": LOGIN})
    await other.call("logout", user="ann", **more)
    await other.held("close", "logged_in", user="ann")


ACCOUNT = """
handbook: account
actions:
  read_account: {input: {user: string}}
  withdraw: {input: {user: string, amount: number}}
  pay: {input: {user: string, amount: number}, irreversible: true}
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  pay: {requires: "covered(user, amount)"}
"""


async def test_a_call_that_broke_off_may_have_changed_something() -> None:
    money = {"ann": 100}

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "read_account":
            return {"balance": money["ann"]}
        money["ann"] -= given["amount"]
        if name == "withdraw":
            raise ConnectionError("reset")
        return {"done": True}

    desk = await open_desk(ACCOUNT, answers, "pg")
    await desk.start("pay", user="ann", amount=80)
    await desk.push({"read_account": {"user": "ann"}})
    await desk.call("withdraw", user="ann", amount=80)
    await desk.held("pay", "covered", "withdraw", user="ann", amount=80)
    await desk.call("read_account", user="ann")
    await desk.held("pay", "covered", user="ann", amount=80)
    assert money["ann"] == 20


async def test_a_number_that_no_double_can_hold() -> None:
    desk = await open_desk(ACCOUNT, lambda name, given: {"balance": 2.0**53}, "pg")
    await desk.start("pay", user="ann", amount=2**53 + 1)
    await desk.push({"read_account": {"user": "ann"}})
    await desk.held("pay", "covered", user="ann", amount=2**53 + 1)
    await desk.start_anew("pay", user="ann", amount=2**53)
    await desk.push({"read_account": {"user": "ann"}})
    await desk.done("pay", user="ann", amount=2**53)


AMENDED = """
handbook: amended
actions:
  look_up: {input: {user: string}}
  send:
    input: {amount: number, user: {type: string, required: false}}
    irreversible: true
    approval: supervisor
predicates:
  known(user):
    says: The customer {user} is known.
    verify: look_up(user)
    verdict: result.known
procedures:
  send: {requires: known(user)}
  send_five: {action: send(amount=5), requires: known(user)}
"""


@pytest.mark.parametrize(
    ("goal", "amended", "says"),
    [
        ("send", {"amount": 5}, "`user` has no value"),
        ("send", {"amount": 5, "user": "eve"}, "`known` must be true"),
        ("send_five", {"amount": 5000, "user": "ann"}, "`amount` is fixed to 5"),
    ],
    ids=["left out", "somebody else", "a fixed input"],
)
async def test_an_amendment_is_proven_anew(goal: str, amended: dict[str, JSON], says: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"known": given.get("user") == "ann"}

    desk = await open_desk(AMENDED, answers, "pg")
    values = {"user": "ann"} if goal == "send_five" else {"user": "ann", "amount": 5}
    await desk.start(goal, **values)
    await desk.push({"look_up": {"user": "ann"}})
    waiting = await desk.call("send", user="ann", amount=5)
    assert waiting.held is not None
    assert not waiting.held.why
    held = await desk.session.decide(
        "amend", waiting.call_id, by="dana", role="supervisor", arguments=amended
    )
    answer = await desk.session.run_held(held.call_id)
    assert answer.status is CallStatus.HELD
    assert says in answer.problem
    assert not desk.made("send")


TWINS = """
handbook: twins
actions:
  look_up: {input: {user: string}}
  send: {input: {user: string, to: string}, irreversible: true}
predicates:
  known(user):
    says: The customer {user} is known.
    verify: look_up(user)
    verdict: result.known
procedures:
  give_back: {action: "send(user=friend, to=friend)", requires: known(friend)}
"""


async def test_one_name_for_two_inputs_is_one_value() -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"known": given.get("user") == "bob"}

    desk = await open_desk(TWINS, answers, "pg")
    await desk.call("look_up", user="bob")
    await desk.start("give_back")
    await desk.push()
    await desk.held("send", "friend", user="ann", to="bob")
    await desk.held("send", "friend", user="bob", to="ann")
    await desk.done("send", user="bob", to="bob")


VOUCHER = """
handbook: voucher
actions:
  read_voucher: {input: {voucher: string}}
  redeem: {input: {user: string, voucher: string}, irreversible: true}
predicates:
  has_voucher(user):
    says: The customer {user} has a voucher.
    verify: read_voucher(voucher)
    ask: [voucher]
    verdict: result.owner == user
procedures:
  redeem: {requires: has_voucher(user)}
"""


async def test_the_voucher_that_was_shown_is_the_one_that_is_redeemed() -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"owner": "eve" if given.get("voucher") == "gift-3" else "bob"}

    desk = await open_desk(VOUCHER, answers, "pg")
    await desk.start("redeem", user="eve", voucher="gift-1")
    await desk.push({"read_voucher": {"voucher": "gift-3"}})
    await desk.held("redeem", user="eve", voucher="gift-1")
    await desk.start_anew("redeem", user="eve", voucher="gift-3")
    await desk.push({"read_voucher": {"voucher": "gift-3"}})
    await desk.done("redeem", user="eve", voucher="gift-3")


TOKEN = """
handbook: token
actions:
  take_token: {input: {user: string}, changes: [tokens]}
  enter: {input: {user: string}, irreversible: true}
predicates:
  has_token(user):
    says: The customer {user} has a token left.
    verify: take_token(user)
    verdict: result.left > 0
procedures:
  enter: {requires: has_token(user)}
"""


async def test_an_answer_that_is_old_when_it_comes() -> None:
    """The call changes what it reads: there was a token, and now there is none."""

    left = [1]

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        told = {"left": left[0]}
        left[0] = max(0, left[0] - 1)
        return told

    desk = await open_desk(TOKEN, answers, "pg")
    await desk.start("enter", user="ann")
    await desk.push({"take_token": {"user": "ann"}})
    await desk.held("enter", "has_token", "changes what it reads", user="ann")


ASKED_TWICE = """
handbook: x
actions:
  cancel: {input: {booking: string}, irreversible: true, confirm: It will be gone.}
  note: {input: {text: string}, read_only: true}
procedures:
  cancel: {}
"""


@pytest.mark.parametrize("last", ["first", "second"])
@pytest.mark.parametrize("settled", [True, False])
async def test_of_two_questions_at_once_the_later_word_counts(last: str, settled: bool) -> None:
    """The user says yes to one question and then no to the other, or the other way round;
    the results come in any order, or one of them does not come."""

    desk = await open_desk(ASKED_TWICE, lambda name, given: {"ok": True}, "pg")
    words = {"first": "no", "second": "yes"} if last == "first" else {}
    words = words or {"first": "yes", "second": "no"}
    waiting = {one: asyncio.Event() for one in words}
    turn = iter(words)

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        mine = next(turn)
        if mine != last:
            outcome = await desk.session.user_said(words[mine])
            spoken.set()
            await waiting[mine].wait()
        else:
            await spoken.wait()
            outcome = await desk.session.user_said(words[mine])
            await waiting[mine].wait()
        return UserAnswer(words[mine], outcome.events[0].seq)

    spoken = asyncio.Event()
    desk.session.asker = ask
    await desk.start("cancel", booking="b")
    asked = {
        name: asyncio.create_task(
            desk.session.call_tool("confirm_with_user", {**ABOUT}, f"q-{name}")
        )
        for name in words
    }
    await spoken.wait()
    other = "second" if last == "first" else "first"
    # The word that came last is answered first; the yes that came before it arrives late.
    waiting[last].set()
    await asked[last]
    if settled:
        waiting[other].set()
        await asked[other]
    await desk.push()
    await desk.held("cancel", "cancel_is_confirmed", booking="b")
    waiting[other].set()
    await asyncio.gather(*asked.values())


ABOUT: Mapping[str, JSON] = {"action": "cancel", "booking": "b"}
