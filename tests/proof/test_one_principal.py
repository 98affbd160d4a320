"""P11: whoever is identified by any gate marked `principal` is the customer from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from attack_desk import FAILED, VIEWS_WITH_A_MACHINE, AttackDesk, errors, open_desk

from sopilot.machine.proof.licence import Licence
from sopilot.session import admission as _admission
from sopilot.values.json import JSON

ACTIONS = """
handbook: counter
actions:
  by_mail: {input: {email: string}, changes: []}
  by_phone: {input: {number: string}, changes: []}
  read_order: {input: {order: string}}
  cancel: {input: {order: string, customer: string}, irreversible: true, confirm: false}
  ship: {input: {order: string, customer: string}, irreversible: true, confirm: false}
"""
OWNED = """
  owned(order, customer):
    {says: owned, verify: read_order(order), verdict: result.owner == customer}
"""
SAME_PARAMETER = f"""{ACTIONS}
predicates:
  mailed(customer):
    says: known by mail
    established_by: by_mail(email)
    verdict: result.customer == customer
    principal: true
  phoned(customer):
    says: known by telephone
    established_by: by_phone(number)
    verdict: result.customer == customer
    principal: true
{OWNED}
procedures:
  cancel: {{requires: [any: [mailed(customer), phoned(customer)], owned(order, customer)]}}
  ship: {{requires: [mailed(customer), owned(order, customer)]}}
"""
OTHER_PARAMETER = f"""{ACTIONS}
predicates:
  mailed(email): {{says: mailed, established_by: by_mail(email), principal: true}}
  phoned(number): {{says: phoned, established_by: by_phone(number), principal: true}}
{OWNED}
procedures:
  cancel:
    inputs: {{email: string}}
    requires: [mailed(email), owned(order, customer)]
  ship:
    inputs: {{number: string}}
    requires: [phoned(number), owned(order, customer)]
"""
ONE_PROCEDURE = SAME_PARAMETER.replace("  ship: {requires", "  ship: {says: x, requires").replace(
    "any: [mailed(customer), phoned(customer)]", "mailed(customer)"
)
"""No procedure requires `phoned`: it identifies the customer all the same."""


@dataclass
class Counter:
    """The shop's own state: who stands at the counter, and what was done for whom."""

    customers: Mapping[str, str] = field(
        default_factory=lambda: {"a@x": "anna", "b@x": "bob", "11": "anna", "22": "bob"}
    )
    serving: str = ""
    wronged: list[str] = field(default_factory=list)

    def answer(self, name: str, given: Mapping[str, JSON]) -> Any:
        if name in ("by_mail", "by_phone"):
            (key,) = given.values()
            if key not in self.customers:
                return FAILED
            self.serving = self.customers[str(key)]
            return {"customer": self.serving}
        if name == "read_order":
            return {"owner": "anna"}
        if self.serving != given["customer"]:
            self.wronged.append(self.serving)
        return {}


def unproven(desk: AttackDesk) -> set[str]:
    """What the audit says against a call that was carried out; how the executor moved is
    another matter."""
    return {"gate-shut", "evidence-stale", "guard-disagrees"}.intersection(errors(desk.session))


async def at_the_act(desk: AttackDesk, handbook: str) -> None:
    values = {"email": "a@x"} if handbook is OTHER_PARAMETER else {}
    await desk.start("cancel", order="o", customer="anna", **values)
    await desk.push({"by_mail": {"email": "a@x"}, "read_order": {"order": "o"}})


@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
@pytest.mark.parametrize("handbook", [SAME_PARAMETER, OTHER_PARAMETER, ONE_PROCEDURE])
async def test_somebody_else_by_another_way_closes_what_the_first_one_opened(
    handbook: str, view: str
) -> None:
    counter = Counter()
    desk = await open_desk(handbook, counter.answer, view)
    await at_the_act(desk, handbook)
    await desk.call("by_phone", number="22")
    await desk.held("cancel", "`mailed` must be true", order="o", customer="anna")
    assert (counter.serving, counter.wronged) == ("bob", [])
    await desk.call("by_mail", email="a@x")
    await desk.done("cancel", order="o", customer="anna")
    assert counter.wronged == []
    assert unproven(desk) == set()


@pytest.mark.parametrize("handbook", [SAME_PARAMETER, OTHER_PARAMETER, ONE_PROCEDURE])
async def test_the_audit_finds_it_by_itself(handbook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter()
    desk = await open_desk(handbook, counter.answer, "pg")
    await at_the_act(desk, handbook)
    await desk.call("by_phone", number="22")
    monkeypatch.setattr(_admission, "_license", lambda session, arguments: Licence())
    await desk.done("cancel", order="o", customer="anna")
    assert counter.wronged == ["bob"]
    assert "gate-shut" in errors(desk.session)


@pytest.mark.parametrize(
    ("handbook", "number", "shut"),
    [
        (SAME_PARAMETER, "11", False),  # the answer shows that it is Anna again
        (ONE_PROCEDURE, "11", False),
        (OTHER_PARAMETER, "11", True),  # a number and an address can't be compared
        (SAME_PARAMETER, "33", False),  # the look-up failed: nobody was identified
        (OTHER_PARAMETER, "33", False),
    ],
)
async def test_the_same_person_by_another_way(handbook: str, number: str, shut: bool) -> None:
    counter = Counter()
    desk = await open_desk(handbook, counter.answer, "pg")
    await at_the_act(desk, handbook)
    await desk.call("by_phone", number=number)
    if shut:
        await desk.held("cancel", "`mailed`", "undecided", order="o", customer="anna")
    else:
        await desk.done("cancel", order="o", customer="anna")
    assert unproven(desk) == set()


async def test_one_opening_serves_every_way_to_the_same_customer() -> None:
    """Bob by telephone shuts both; Anna by telephone opens one of the two that are required."""

    counter = Counter()
    desk = await open_desk(SAME_PARAMETER, counter.answer, "pg")
    await desk.call("by_mail", email="a@x")
    await desk.call("by_phone", number="22")
    await desk.call("by_phone", number="11")
    await desk.start("cancel", order="o", customer="anna")
    await desk.push({"read_order": {"order": "o"}})
    await desk.done("cancel", order="o", customer="anna")
    await desk.start_anew("ship", order="o", customer="anna")
    await desk.push({"read_order": {"order": "o"}})
    await desk.held("ship", "`mailed` must be true", order="o", customer="anna")
    assert counter.wronged == []
