"""P11: whoever is identified by any gate marked `principal` is the customer from then on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from attack_desk import (
    FAILED,
    AttackDesk,
    errors,
    open_desk,
    under_way,
    unproven,
    without_proof,
)

from sopilot.audit.audit import audit_trace
from sopilot.protocols import ToolResult
from sopilot.trace.events import Complete
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


async def at_the_counter(desk: AttackDesk, handbook: str) -> None:
    values = {"email": "a@x"} if handbook is OTHER_PARAMETER else {}
    await desk.start("cancel", order="o", customer="anna", **values)
    await desk.push({"by_mail": {"email": "a@x"}, "read_order": {"order": "o"}})


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("handbook", [SAME_PARAMETER, OTHER_PARAMETER, ONE_PROCEDURE])
async def test_somebody_else_by_another_way_closes_what_the_first_one_opened(
    handbook: str, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the guard is broken, the audit finds it by itself."""
    counter = Counter()
    desk = await open_desk(handbook, counter.answer)
    await at_the_counter(desk, handbook)
    await desk.call("by_phone", number="22")
    await desk.held("cancel", "`mailed` must be true", order="o", customer="anna")
    assert (counter.serving, counter.wronged) == ("bob", [])
    if broken:
        without_proof(monkeypatch)
    else:
        await desk.call("by_mail", email="a@x")
    await desk.done("cancel", order="o", customer="anna")
    assert counter.wronged == ["bob"] * broken
    assert ("gate-shut" in errors(desk)) is broken
    assert bool(unproven(desk)) is broken


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
    desk = await open_desk(handbook, counter.answer)
    await at_the_counter(desk, handbook)
    await desk.call("by_phone", number=number)
    if shut:
        await desk.held("cancel", "`mailed`", "undecided", order="o", customer="anna")
    else:
        await desk.done("cancel", order="o", customer="anna")
    assert unproven(desk) == set()


async def test_one_opening_serves_every_way_to_the_same_customer() -> None:
    """Bob by telephone shuts both; Anna by telephone opens one of the two that are required."""

    counter = Counter()
    desk = await open_desk(SAME_PARAMETER, counter.answer)
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


TWO_WAYS_IN = """
handbook: x
actions:
  by_mail: {input: {user: string}, changes: []}
  by_phone: {input: {user: string, number: string}, changes: []}
  read_user: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  mailed(user): {says: mailed, established_by: by_mail(user), principal: true}
  phoned(user): {says: phoned, established_by: "by_phone(user, number)", principal: true}
  known(user): {says: known, verify: read_user(user), verdict: result.known}
procedures:
  pay: {requires: [any: [mailed(user), phoned(user)], known(user)]}
"""


@pytest.mark.parametrize("last", ["ann", "bob", "ann\u200b"])
async def test_one_customer_at_a_time_whichever_way_they_came_in(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk(TWO_WAYS_IN, lambda name, given: {"known": True})
    await desk.call("by_mail", user="ann")
    await desk.call("by_phone", user=last, number="1")
    await desk.start("pay", user="ann")
    await desk.push({"read_user": {"user": "ann"}})
    if last != "ann":
        await desk.held("pay", "`mailed` must be true", user="ann")
        without_proof(monkeypatch)
    await desk.done("pay", user="ann")
    assert ("gate-shut" in errors(desk)) is (last != "ann")


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
    desk = await open_desk(BADGE, lambda name, given: {})
    await desk.start("pay", user="ann")
    await desk.push({"login": {"user": "ann"}})
    await desk.call("login", badge="77")
    await desk.held("pay", "`known` must be true", "undecided", user="ann")


SERVED = """
handbook: x
actions:
  serve: {input: {user: string}, read_only: true}
  redeem: {input: {user: string}, irreversible: true}
predicates:
  served(user): {says: served, principal: true, established_by: serve(user)}
procedures:
  redeem: {requires: {not: served(user)}}
"""


async def test_of_two_successes_guard_and_audit_name_the_one_answered_last() -> None:
    desk = await open_desk(SERVED, lambda *_: {"ok": True})
    await desk.call("serve", user="u")
    async with under_way(desk, "serve", user="w"):
        await desk.call("serve", user="w")  # asked for later, answered earlier
    await desk.start("redeem", user="u")
    await desk.push()
    await desk.done("redeem", user="u")
    await desk.session.operate(Complete())
    assert errors(desk) == []


@pytest.mark.parametrize(
    ("action", "given", "held"),
    [
        ("read_user", {"user": "bob"}, False),  # it identifies nobody
        ("by_phone", {"user": "ann", "number": "1"}, False),
        ("by_phone", {"user": "bob", "number": "1"}, True),
        ("by_mail", {"user": "bob"}, True),
    ],
)
async def test_a_login_under_way_may_be_somebody_elses(
    action: str, given: dict[str, JSON], held: bool
) -> None:
    desk = await open_desk(TWO_WAYS_IN, lambda *_: {"known": True})
    await desk.call("by_mail", user="ann")
    await desk.start("pay", user="ann")
    await desk.push({"read_user": {"user": "ann"}})
    async with under_way(desk, action, **given):
        if held:
            await desk.held("pay", "`mailed` must be true", user="ann")
        else:
            await desk.done("pay", user="ann")
    assert unproven(desk) == set()


OWNER_OR_CUSTOMER = SAME_PARAMETER.replace(
    "any: [mailed(customer), phoned(customer)], owned(order, customer)",
    "any: [mailed(customer), owned(order, customer)]",
)


@pytest.mark.parametrize("first", ["awaited", "broke off"])
async def test_a_call_without_an_answer_identifies_nobody_whatever_the_same_call_answers(
    first: str,
) -> None:
    """It may be carried out later. Guard and audit both leave the gate undecided."""
    counter = Counter()
    broken = [first == "broke off"]

    def answer(name: str, given: Mapping[str, JSON]) -> Any:
        if name == "by_phone" and broken.pop():
            return ToolResult(False, {"error": "no answer in time"}, unknown=True)
        return counter.answer(name, given)

    desk = await open_desk(OWNER_OR_CUSTOMER, answer)
    await desk.call("by_mail", email="a@x")
    async with AsyncExitStack() as stack:
        if first == "awaited":
            await stack.enter_async_context(under_way(desk, "by_phone", number="11"))
        else:
            await desk.call("by_phone", number="11")
        broken[:] = [False, False]
        await desk.call("by_phone", number="11")
        await desk.start("cancel", order="o", customer="anna")
        await desk.push({"read_order": {"order": "o"}})
        await desk.done("cancel", order="o", customer="anna")
    events = desk.session.own_events
    (licence,) = (item.payload["licence"] for item in events if item.payload.get("licence"))
    judged = {leaf["predicate"]: leaf["holds"] for leaf in licence["leaves"]}
    assert judged == {"mailed": None, "owned": True}
    report = audit_trace(desk.session.programs.programs, events, judge=desk.session.judge)
    assert "guard-disagrees" not in [finding.code for finding in report.findings]
