"""The twelve attacks that once worked, each by its name, under every view with a machine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import FAILED, VIEWS_WITH_A_MACHINE, open_desk
from attacked_handbooks import CLAIMS, DOOR, FROZEN, GATE, HALF, TYPED

from sopilot.trace.events import Complete
from sopilot.values.json import JSON

pytestmark = pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)


async def test_the_amount_is_named_only_at_the_payment(view: str) -> None:
    desk = await open_desk(CLAIMS, lambda name, given: {"limit": 500}, view)
    await desk.start("pay", claim="c-1")
    await desk.push({"read_claim": {"claim": "c-1"}})
    await desk.held("pay", "covers", claim="c-1", amount=999_999)
    await desk.start_anew("pay", claim="c-1", amount=400)
    await desk.push({"read_claim": {"claim": "c-1"}})
    await desk.done("pay", claim="c-1", amount=400)


async def test_evidence_about_one_guest_and_the_door_for_another(view: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"known": given.get("guest") == "guest-1"}

    desk = await open_desk(DOOR, answers, view)
    await desk.call("look_up", guest="guest-1")
    await desk.start("open_door")
    await desk.push({"look_up": {"guest": "guest-1"}})
    await desk.held("open_door", guest="guest-2")
    await desk.start_anew("open_door", guest="guest-2")
    await desk.call("look_up", guest="guest-1")
    await desk.say(True, "look_up")
    await desk.push()
    await desk.held("open_door", guest="guest-2")


async def test_logged_in_as_one_customer_and_acted_for_another(view: str) -> None:
    desk = await open_desk(GATE, lambda name, given: {"ok": True}, view)
    await desk.start("close")
    await desk.call("login", user="ann", password="x")
    await desk.push()
    await desk.held("close", "logged_in", user="bob")
    await desk.call("logout", user="ann")
    await desk.held("close", "logged_in", user="ann")
    await desk.start_anew("close", user="cid")
    await desk.push({"login": {"user": "cid", "password": "x"}})
    await desk.done("close", user="cid")


async def test_one_call_of_two(view: str) -> None:
    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"total": 0 if name == "read_account" else 900}

    desk = await open_desk(HALF, answers, view)
    await desk.start("close", user="ann")
    await desk.push({"read_account": {"user": "ann"}})
    await desk.held("close", "settled", "read_debts", user="ann")


@pytest.mark.parametrize(
    "answer",
    [FAILED, None, "no such account", {}, {"status": None}, {"status": 5}, [], 0],
    ids=["failed", "null", "text", "no field", "null field", "number", "list", "zero"],
)
async def test_not_frozen_because_nobody_knows(view: str, answer: JSON) -> None:
    desk = await open_desk(FROZEN, lambda name, given: answer, view)
    await desk.start("pay", user="ann")
    await desk.push({"read_account": {"user": "ann"}})
    await desk.held("pay", "frozen", user="ann")
    await desk.say(False, "read_account")
    await desk.push()
    await desk.held("pay", "frozen", user="ann")


async def test_not_frozen_because_somebody_knows(view: str) -> None:
    desk = await open_desk(FROZEN, lambda name, given: {"status": "open"}, view)
    await desk.start("pay", user="ann")
    await desk.push({"read_account": {"user": "ann"}})
    await desk.done("pay", user="ann")


async def test_a_value_in_another_spelling(view: str) -> None:
    desk = await open_desk(CLAIMS, lambda name, given: {"limit": 500}, view)
    outcome = await desk.start("pay", claim="c-1", amount="5000")
    assert not outcome.accepted
    assert "number" in str(outcome.answer["problem"])
    await desk.start_anew("pay", claim="c-1", amount=500)
    await desk.push({"read_claim": {"claim": "c-1"}})
    for other in ("500", True, None, 5000, [500]):
        await desk.held("pay", "amount", claim="c-1", amount=other)
    await desk.done("pay", claim="c-1", amount=500.0)


async def test_a_block_list_in_another_spelling(view: str) -> None:
    desk = await open_desk(TYPED, lambda name, given: {"numbers": [123]}, view)
    await desk.start("call_back", number="123")
    await desk.push({"read_list": {}})
    await desk.held("call_back", number="123")
    await desk.start_anew("call_back", number=124)
    await desk.push({"read_list": {}})
    await desk.held("call_back", "number", number="123")
    await desk.held("call_back", "number", number=123)
    await desk.start_anew("call_back", number=123.0)
    await desk.push({"read_list": {}})
    await desk.held("call_back", "blocked", number=123)


async def test_a_block_list_of_texts_against_a_number(view: str) -> None:
    """Nothing is equal across types, and nothing is unequal either: it is undecided."""

    desk = await open_desk(TYPED, lambda name, given: {"numbers": ["123"]}, view)
    await desk.start("call_back", number=123)
    await desk.push({"read_list": {}})
    await desk.held("call_back", "blocked", number=123)


BALANCE = """
handbook: balance
actions:
  read_account: {input: {user: string}}
  deposit: {input: {user: string, amount: number}}
  transfer: {input: {user: string, amount: number, to: string}, irreversible: true}
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  transfer: {requires: "covered(user, amount)"}
"""


async def test_two_processes_on_one_balance(view: str) -> None:
    money = {"ann": 100}

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "read_account":
            return {"balance": money["ann"]}
        money["ann"] -= given["amount"] if name == "transfer" else -given["amount"]
        return {"done": True}

    desk = await open_desk(BALANCE, answers, view)
    for to in ("x", "y"):
        await desk.start("transfer", user="ann", amount=80, to=to)
        await desk.push({"read_account": {"user": "ann"}})
    await desk.done("transfer", user="ann", amount=80, to="y")
    await desk.session.operate(Complete("done"))
    await desk.held("transfer", "covered", user="ann", amount=80, to="x")
    await desk.call("read_account", user="ann")
    await desk.held("transfer", "covered", user="ann", amount=80, to="x")
    await desk.call("deposit", user="ann", amount=100)
    await desk.held("transfer", "covered", user="ann", amount=80, to="x")
    await desk.call("read_account", user="ann")
    await desk.done("transfer", user="ann", amount=80, to="x")
    assert money["ann"] == 40


async def test_the_older_yes_under_the_newer_no(view: str) -> None:
    balances = [500, 5]

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return {"balance": balances.pop(0)} if name == "read_account" else {"done": True}

    desk = await open_desk(BALANCE, answers, view)
    first = await desk.call("read_account", user="ann")
    await desk.start("transfer", user="ann", amount=80, to="x")
    await desk.push()
    await desk.call("read_account", user="ann")
    await desk.say(True, f"#{first.seq}")
    await desk.push()
    await desk.held("transfer", "covered", user="ann", amount=80, to="x")


async def test_the_newest_look_up_failed(view: str) -> None:
    given_out: list[JSON] = [{"balance": 500}, FAILED]

    def answers(name: str, given: Mapping[str, JSON]) -> JSON:
        return given_out.pop(0) if name == "read_account" else {"done": True}

    desk = await open_desk(BALANCE, answers, view)
    await desk.start("transfer", user="ann", amount=80, to="x")
    await desk.push({"read_account": {"user": "ann"}})
    await desk.call("read_account", user="ann")
    await desk.held("transfer", "covered", user="ann", amount=80, to="x")
