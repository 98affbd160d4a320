"""P12: what a tool fills in by itself is judged, by whatever way the call comes, at every depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import AttackDesk, desk_over

from small_desks import AnsweringTools, programs_of
from sopilot.protocols import ToolSchema
from sopilot.values.json import JSON
from sopilot.values.schema import filled_in
from sopilot.views.step_answers import CallStatus

HANDBOOK = """
handbook: payments
actions:
  pay: {input: {amount: {type: number, required: false}}, irreversible: true}
  send: {input: {order: object}, irreversible: true}
predicates:
  small(amount):
    says: The amount {amount} is small.
    verify: arguments
    verdict: amount == null || amount < 100
  little(order):
    says: The order is small.
    verify: arguments
    verdict: "!has(order.amount) || order.amount < 100"
procedures:
  pay: {requires: small(amount)}
  send: {requires: little(order)}
"""
AMOUNT: dict[str, Any] = {"type": "number", "default": 500}
ORDER: dict[str, Any] = {"type": "object", "properties": {"amount": AMOUNT}}
PAY: dict[str, Any] = {"type": "object", "properties": {"amount": AMOUNT}}
PLAIN: dict[str, Any] = {"type": "object", "properties": {"order": ORDER}}
REFERRED: dict[str, Any] = {
    "type": "object",
    "properties": {"order": {"anyOf": [{"$ref": "#/$defs/Order"}, {"type": "null"}]}},
    "$defs": {"Order": ORDER},
}


class Bank(AnsweringTools):
    """Its tools fill in 500 where nobody says how much."""

    def __init__(self, send: Mapping[str, JSON] = PLAIN) -> None:
        super().__init__(self.pay, (ToolSchema("pay", "", PAY), ToolSchema("send", "", send)))
        self.paid: list[Any] = []

    def pay(self, name: str, arguments: Mapping[str, Any]) -> JSON:
        order = arguments if name == "pay" else arguments["order"]
        self.paid.append(order.get("amount", 500))
        return {"paid": True}


async def opened(bank: Bank, text: str = HANDBOOK) -> AttackDesk:
    return await desk_over(programs_of(text), bank)


@pytest.mark.parametrize("send", [PLAIN, REFERRED])
@pytest.mark.parametrize(
    ("action", "left_out", "written"),
    [("pay", {}, {"amount": 5}), ("send", {"order": {}}, {"order": {"amount": 5}})],
)
async def test_a_default_is_judged(action: str, left_out: Any, written: Any, send: Any) -> None:
    bank = Bank(send)
    desk = await opened(bank)
    await desk.start(action, **left_out)
    await desk.push()
    assert (await desk.call(action, **left_out)).status is CallStatus.HELD
    assert bank.paid == []
    await desk.start_anew(action, **written)
    await desk.push()
    await desk.done(action, **written)
    assert bank.paid == [5]


async def test_what_people_leave_out_is_filled_in_by_nobody() -> None:
    text = HANDBOOK.replace("required: false}}, irr", "required: false}}, approval: boss, irr")

    bank = Bank()
    desk = await opened(bank, text)
    await desk.start("pay", amount=5)
    await desk.push()
    held = (await desk.call("pay", amount=5)).call_id
    answer = await desk.amended(held, "boss")
    assert answer.status is CallStatus.HELD
    assert bank.paid == []


def test_a_schema_that_refers_to_itself_ends() -> None:
    node: dict[str, Any] = {"properties": {"next": {"$ref": "#", "default": {}}}}
    filled: Any = filled_in({}, node)
    depth = 0
    while filled:
        filled, depth = filled["next"], depth + 1
    assert 0 < depth < 50
