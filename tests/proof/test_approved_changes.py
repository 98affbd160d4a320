"""P14: an approval without the proof is for one state of things; the judge is the simulator."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import VIEWS_WITH_A_MACHINE, AttackDesk, errors, open_desk

from sopilot.session import admission
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

HANDBOOK = """
handbook: orders
actions:
  by_mail: {input: {email: string}, changes: []}
  by_phone: {input: {number: string}, changes: []}
  withdraw: {input: {amount: number}}
  read_balance: {input: {customer: string}}
  cancel: {input: {customer: string}, irreversible: true}
predicates:
  mailed(customer):
    says: The customer {customer} was found by mail.
    established_by: by_mail(email)
    verdict: result.customer == customer
    principal: true
  phoned(number):
    says: Somebody with the number {number} is on the line.
    established_by: by_phone(number)
    principal: true
  covered(customer):
    says: The balance of {customer} covers the fee.
    verify: read_balance(customer)
    verdict: result.balance > 100
procedures:
  cancel: {requires: [mailed(customer), covered(customer)]}
"""
CUSTOMERS = {"a@x": "anna", "11": "anna", "22": "bob"}
Call = tuple[str, dict[str, JSON]]

BEFORE_AND_AFTER: list[tuple[Call, Call]] = [
    (("by_phone", {"number": "11"}), ("by_phone", {"number": "22"})),
    (("withdraw", {"amount": 10}), ("withdraw", {"amount": 480})),
    (("withdraw", {"amount": 10}), ("withdraw", {"amount": 10})),
]


class Counter:
    """Who is on the line, and what the account holds."""

    def __init__(self) -> None:
        self.customer = ""
        self.balance = 500.0
        self.cancelled: list[tuple[str, float]] = []

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> JSON:
        if name == "withdraw":
            self.balance -= float(str(arguments["amount"]))
        elif name == "read_balance":
            return {"balance": self.balance}
        elif name == "cancel":
            self.cancelled.append((self.customer, self.balance))
        else:
            (key,) = arguments.values()
            self.customer = CUSTOMERS[str(key)]
            return {"customer": self.customer}
        return {"done": True}


async def _approved(counter: Counter, view: str, first: Call) -> AttackDesk:
    """A person approved the call, in the state of things after ``first``."""
    desk = await open_desk(HANDBOOK, counter.answer, view)
    await desk.start("cancel", customer="anna")
    await desk.call("by_mail", email="a@x")
    await desk.push({"by_mail": {"email": "a@x"}, "read_balance": {"customer": "anna"}})
    await desk.call(first[0], **first[1])
    await desk.call("cancel", customer="anna")
    (request,) = desk.session.held_calls
    await desk.session.decide("approve", request.call_id, by="sue", role="operator")
    return desk


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize(("before", "after"), BEFORE_AND_AFTER)
async def test_an_approval_of_an_undecided_check_ends_with_the_next_change(
    view: str, before: Call, after: Call
) -> None:
    counter = Counter()
    desk = await _approved(counter, view, before)
    await desk.call(after[0], **after[1])
    answer = await desk.call("cancel", customer="anna")
    assert answer.status is CallStatus.HELD, answer
    assert counter.cancelled == []


@pytest.mark.parametrize("before", [one for one, _ in BEFORE_AND_AFTER[:2]])
async def test_an_approval_serves_the_state_of_things_that_it_was_given_in(before: Call) -> None:
    counter = Counter()
    desk = await _approved(counter, VIEWS_WITH_A_MACHINE[0], before)
    await desk.done("cancel", customer="anna")
    assert counter.cancelled == [("anna", counter.balance)]
    assert _blamed(desk) == []


@pytest.mark.parametrize(("before", "after"), BEFORE_AND_AFTER)
async def test_the_audit_blames_a_guard_that_overlooks_the_change(
    before: Call, after: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_same_facts", lambda *_: True)

    counter = Counter()
    desk = await _approved(counter, VIEWS_WITH_A_MACHINE[0], before)
    await desk.call(after[0], **after[1])
    await desk.done("cancel", customer="anna")
    assert len(counter.cancelled) == 1
    assert _blamed(desk) != []


def _blamed(desk: AttackDesk) -> list[str]:
    """Errors about the guarded call: of calls that no program asks for the audit says so, too."""
    return [code for code in errors(desk.session) if code != "unlicensed-call"]
