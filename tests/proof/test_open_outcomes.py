"""P10: a call whose outcome is unknown counts as carried out and as not carried out.

The judge is the simulated bank: what it carried out, and on which balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import AnsweringTools, AttackDesk

from counter_desk import HandClock
from sopilot.audit.audit import audit_trace
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.messages.diagnostic import Severity
from sopilot.protocols import ToolResult
from sopilot.session.opening import open_session, resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

BANK = """
handbook: bank
actions:
  read_balance: {input: {user: string}}
  withdraw: {input: {user: string, amount: number}}
  send: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  covered(user, amount):
    {says: covered, verify: read_balance(user), verdict: result.balance >= amount}
procedures:
  send: {requires: "covered(user, amount)"}
"""
PROGRAMS = {goal: one.program for goal, one in compile_handbook(load_handbook(BANK)).items()}
GIVEN: dict[str, JSON] = {"user": "anna", "amount": 500}


class Bank:
    """Carries out what was sent to it when it likes to."""

    def __init__(self, *, breaks: str, says: str = "raises") -> None:
        self.balance, self.breaks, self.says = 500, breaks, says
        self.late: list[str] = []
        self.overdrawn = False

    def carry_out(self, name: str) -> None:
        self.overdrawn |= name == "send" and self.balance < 500
        self.balance -= 500

    def carry_out_late(self) -> None:
        for name in self.late:
            self.carry_out(name)
        self.late = []

    async def answer(self, name: str, given: Mapping[str, JSON]) -> Any:
        if name == "read_balance":
            return {"balance": self.balance}
        if name == self.breaks:
            self.breaks = ""
            self.late.append(name)
            if self.says == "raises":
                raise TimeoutError("no answer in time")
            return ToolResult(False, {"error": "no answer in time"}, unknown=True)
        self.carry_out(name)
        return {"balance": self.balance}


async def opened(bank: Bank, store: MemoryStore) -> AttackDesk:
    answers: Any = bank.answer
    tools = AnsweringTools(answers)
    session = await open_session(store, PROGRAMS, tools=tools, clock=HandClock())
    desk = AttackDesk(session, tools)
    await desk.start("send", **GIVEN)
    return desk


async def resumed(desk: AttackDesk, store: MemoryStore) -> AttackDesk:
    await desk.session.release()
    session = await resume_session(store, desk.session.id, tools=desk.tools, clock=HandClock())
    await session.take_up()
    return AttackDesk(session, desk.tools)


def blamed(desk: AttackDesk) -> list[str]:
    session = desk.session
    report = audit_trace(session.programs.programs, session.events, judge=session.judge)
    # That the attacker withdraws at all is nothing that the program asks for.
    errors = [one for one in report.findings if one.severity is Severity.ERROR]
    return [one.explanation for one in errors if one.code != "unlicensed-call"]


@pytest.mark.parametrize("says", ["raises", "answers"])
@pytest.mark.parametrize("again", [False, True], ids=["same", "resumed"])
async def test_a_withdrawal_that_happens_later(says: str, again: bool) -> None:
    """Row 6: reading the balance again while the withdrawal is open proves nothing."""

    store, bank = MemoryStore(), Bank(breaks="withdraw", says=says)
    desk = await opened(bank, store)
    lost = await desk.call("withdraw", **GIVEN)
    assert lost.status is CallStatus.UNKNOWN
    if again:
        desk = await resumed(desk, store)
    await desk.push({"read_balance": {"user": "anna"}})
    await desk.call("read_balance", user="anna")
    await desk.held("send", "`withdraw`", "its outcome is unknown", **GIVEN)
    bank.carry_out_late()
    await desk.session.resolve_outcome(lost.call_id, ok=True, by="dana")
    await desk.held("send", "read_balance", "may have changed it", **GIVEN)
    await desk.call("read_balance", user="anna")
    await desk.held("send", "`covered` must be true and is false", **GIVEN)
    assert not bank.overdrawn
    assert not blamed(desk)


async def test_a_withdrawal_that_never_happens() -> None:
    """Once somebody has said so, nothing stands in the way, and nothing has to be read again."""

    store, bank = MemoryStore(), Bank(breaks="withdraw")
    desk = await opened(bank, store)
    await desk.push({"read_balance": {"user": "anna"}})
    lost = await desk.call("withdraw", **GIVEN)
    bank.late = []
    await desk.held("send", "its outcome is unknown", **GIVEN)
    await desk.session.resolve_outcome(lost.call_id, ok=False, by="dana")
    await desk.done("send", **GIVEN)
    assert not bank.overdrawn
    assert not blamed(desk)


@pytest.mark.parametrize("says", ["raises", "answers"])
@pytest.mark.parametrize("again", [False, True], ids=["same", "resumed"])
async def test_nothing_is_changed_beneath_an_open_payment(says: str, again: bool) -> None:
    """Row 5: the payment was sent and may be carried out at any time."""

    store, bank = MemoryStore(), Bank(breaks="send", says=says)
    desk = await opened(bank, store)
    await desk.push({"read_balance": {"user": "anna"}})
    lost = await desk.call("send", **GIVEN)
    assert lost.status is CallStatus.UNKNOWN
    if again:
        desk = await resumed(desk, store)
    held = await desk.call("withdraw", **GIVEN)
    assert held.status is CallStatus.HELD
    assert f"how call `{lost.call_id}` of `send` ended" in held.problem
    await desk.done("read_balance", user="anna")
    bank.carry_out_late()
    assert not bank.overdrawn
    await desk.session.resolve_outcome(lost.call_id, ok=True, by="dana")
    await desk.done("withdraw", **GIVEN)
    assert not blamed(desk)


async def test_the_audit_finds_what_a_guard_without_the_clause_lets_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, bank = MemoryStore(), Bank(breaks="send")
    desk = await opened(bank, store)
    await desk.push({"read_balance": {"user": "anna"}})
    await desk.call("send", **GIVEN)
    monkeypatch.setattr("sopilot.session.admission.under_way", lambda *_: None)
    await desk.done("withdraw", **GIVEN)
    bank.carry_out_late()
    assert bank.overdrawn
    assert any("while the outcome of `send`" in sentence for sentence in blamed(desk))
