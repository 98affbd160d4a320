"""P10: a call whose outcome is unknown counts as carried out and as not carried out.

The judge is the simulated bank: what it carried out, and on which balance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import ACCOUNT, AttackDesk, at_the_act, mistakes, open_desk, resumed

from sopilot.protocols import ToolResult
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

GIVEN: dict[str, JSON] = {"user": "anna", "amount": 500}


class Bank:
    """Carries out what was sent to it when it likes to."""

    def __init__(self, *, breaks: str, says: str = "raises") -> None:
        self.balance, self.breaks, self.says = 500, breaks, says
        self.late: list[str] = []
        self.overdrawn = False

    def carry_out(self, name: str) -> None:
        self.overdrawn |= name == "pay" and self.balance < 500
        self.balance -= 500

    def carry_out_late(self) -> None:
        for name in self.late:
            self.carry_out(name)
        self.late = []

    async def answer(self, name: str, given: Mapping[str, JSON]) -> Any:
        if name == "read_account":
            return {"balance": self.balance}
        if name == self.breaks:
            self.breaks = ""
            self.late.append(name)
            if self.says == "raises":
                raise TimeoutError("no answer in time")
            return ToolResult(False, {"error": "no answer in time"}, unknown=True)
        self.carry_out(name)
        return {"balance": self.balance}


async def opened(bank: Bank) -> AttackDesk:
    answers: Any = bank.answer
    desk = await open_desk(ACCOUNT, answers)
    await desk.start("pay", **GIVEN)
    return desk


def blamed(desk: AttackDesk) -> list[str]:
    """Without the finding that no program asks for the attacker's withdrawal."""
    return [one.explanation for one in mistakes(desk) if one.code != "unlicensed-call"]


@pytest.mark.parametrize("says", ["raises", "answers"])
@pytest.mark.parametrize("again", [False, True], ids=["same", "resumed"])
async def test_a_withdrawal_that_happens_later(says: str, again: bool) -> None:
    """Row 6: reading the balance again while the withdrawal is open proves nothing."""

    bank = Bank(breaks="withdraw", says=says)
    desk = await opened(bank)
    lost = await desk.call("withdraw", **GIVEN)
    assert lost.status is CallStatus.UNKNOWN
    if again:
        desk = await resumed(desk)
    await desk.push({"read_account": {"user": "anna"}})
    await desk.call("read_account", user="anna")
    await desk.held("pay", "`withdraw`", "its outcome is unknown", **GIVEN)
    bank.carry_out_late()
    await desk.session.resolve_outcome(lost.call_id, ok=True, by="dana")
    await desk.held("pay", "read_account", "may have changed it", **GIVEN)
    await desk.call("read_account", user="anna")
    await desk.held("pay", "`covered` must be true, but is false", **GIVEN)
    assert not bank.overdrawn
    assert not blamed(desk)


async def test_a_withdrawal_that_never_happens() -> None:
    """Once somebody has said so, nothing stands in the way, and nothing has to be read again."""

    bank = Bank(breaks="withdraw")
    desk = await opened(bank)
    await desk.push({"read_account": {"user": "anna"}})
    lost = await desk.call("withdraw", **GIVEN)
    bank.late = []
    await desk.held("pay", "its outcome is unknown", **GIVEN)
    await desk.session.resolve_outcome(lost.call_id, ok=False, by="dana")
    await desk.done("pay", **GIVEN)
    assert not bank.overdrawn
    assert not blamed(desk)


@pytest.mark.parametrize("says", ["raises", "answers"])
@pytest.mark.parametrize("again", [False, True], ids=["same", "resumed"])
async def test_nothing_is_changed_beneath_an_open_payment(says: str, again: bool) -> None:
    """Row 5: the payment was sent and may be carried out at any time."""

    bank = Bank(breaks="pay", says=says)
    desk = await opened(bank)
    await desk.push({"read_account": {"user": "anna"}})
    lost = await desk.call("pay", **GIVEN)
    assert lost.status is CallStatus.UNKNOWN
    if again:
        desk = await resumed(desk)
    held = await desk.call("withdraw", **GIVEN)
    assert held.status is CallStatus.HELD
    assert f"the outcome of call `{lost.call_id}` of `pay` is unknown" in held.problem
    await desk.done("read_account", user="anna")
    bank.carry_out_late()
    assert not bank.overdrawn
    await desk.session.resolve_outcome(lost.call_id, ok=True, by="dana")
    await desk.done("withdraw", **GIVEN)
    assert not blamed(desk)


async def test_the_audit_finds_what_a_guard_without_the_clause_lets_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bank = Bank(breaks="pay")
    desk = await opened(bank)
    await desk.push({"read_account": {"user": "anna"}})
    await desk.call("pay", **GIVEN)
    monkeypatch.setattr("sopilot.session.admission.under_way", lambda *_: None)
    await desk.done("withdraw", **GIVEN)
    bank.carry_out_late()
    assert bank.overdrawn
    assert any("while the outcome of `pay`" in sentence for sentence in blamed(desk))


async def test_a_call_that_fails_when_it_is_made_again_may_have_been_carried_out() -> None:
    balance, broken = {"now": 500}, [True]

    async def world(name: str, given: Mapping[str, JSON]) -> Any:
        if name != "read_account" and balance["now"] < 500:
            assert name != "pay", "the world denies it"
            return ToolResult(False, {"error": "not enough"})
        if name == "withdraw":
            balance["now"] -= 500
            if broken.pop():
                raise asyncio.CancelledError
        return {"balance": balance["now"]}

    desk = await at_the_act(ACCOUNT, world, "pay", GIVEN, {"read_account": {"user": "anna"}})
    with pytest.raises(asyncio.CancelledError):
        await desk.call("withdraw", **GIVEN)
    desk = await resumed(desk)
    for call_id in desk.session.retryable:
        await desk.session.retry(call_id)
    await desk.held("pay", "`withdraw`", "its outcome is unknown", **GIVEN)


IN_FLIGHT = """
handbook: x
actions:
  login: {input: {user: string}, changes: []}
  logout: {input: {user: string}, changes: []}
  read_account: {input: {user: string}}
  note: {input: {text: string}, changes: []}
  send_letter: {input: {user: string}, irreversible: true, changes: []}
  deactivate: {input: {user: string}, irreversible: true}
predicates:
  logged_in(user): {says: in, established_by: login(user), closed_by: logout(user)}
  active(user): {says: active, verify: read_account(user), verdict: result.active}
procedures:
  send_letter: {requires: [logged_in(user), active(user)]}
  deactivate: {requires: active(user)}
"""


@pytest.mark.parametrize("overtaking", ["logout", "deactivate"])
async def test_neither_a_gate_nor_another_guarded_call_overtakes_one_under_way(
    overtaking: str,
) -> None:
    state = {"active": True, "in": False}
    reached = asyncio.Event()

    async def world(name: str, given: Mapping[str, JSON]) -> JSON:
        if name == "login":
            state["in"] = True
        elif name in ("logout", "deactivate"):
            state["active"] = state["in"] = False
        elif name == "send_letter":
            reached.set()
            await asyncio.sleep(0.02)
            assert all(state.values()), "the world denies it"
        return dict(state)

    desk = await open_desk(IN_FLIGHT, world)
    await desk.start("send_letter", user="u")
    await desk.push({"login": {"user": "u"}, "read_account": {"user": "u"}})
    sending = asyncio.create_task(desk.call("send_letter", user="u"))
    await reached.wait()
    if overtaking == "deactivate":
        await desk.start("deactivate", user="u")
        await desk.push()
    held = await desk.call(overtaking, user="u")
    assert held.status is CallStatus.HELD
    assert "`send_letter` is being carried out" in held.problem
    await desk.done("note", text="quiet")
    assert (await sending).status is CallStatus.DONE
    assert (await desk.call(overtaking, user="u")).status is CallStatus.DONE
