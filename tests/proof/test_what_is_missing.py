"""What a held call says is missing, where there are alternatives."""

from __future__ import annotations

from collections.abc import Mapping

from attack_desk import AttackDesk, open_desk

from sopilot.protocols import ToolResult
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

BOOK = """
handbook: claims
actions:
  read_policy: {input: {policy: string}}
  read_report: {input: {policy: string}}
  pay: {input: {policy: string}, irreversible: true, confirm: false}
predicates:
  medical(policy):
    says: Policy {policy} is a medical one.
    verify: read_policy(policy)
    verdict: result.medical
  plausible(policy):
    says: The report of {policy} is plausible.
    verify: read_report(policy)
    judged_by: model
procedures:
  pay: {requires: {when: medical(policy), then: plausible(policy)}}
"""


def _answers(name: str, given: Mapping[str, JSON]) -> ToolResult:
    return ToolResult(True, {"medical": True, "report": "fine"})


def newest(desk: AttackDesk) -> str:
    found = [one.event.seq for one in desk.session.events if one.event.kind == "domain_result"]
    return f"#{found[-1]}"


async def test_of_if_then_the_part_that_is_missing_is_named() -> None:
    desk = await open_desk(BOOK, _answers, "pg")
    await desk.start("pay", policy="p")
    await desk.call("read_policy", policy="p")
    await desk.say(True, newest(desk))
    await desk.say(True)  # nobody has read the report
    answer = await desk.call("pay", policy="p")
    assert answer.status is CallStatus.HELD
    assert "`plausible` must be true and is undecided" in answer.problem


TWO_WAYS = """
handbook: shop
actions:
  read_user: {input: {user: string}}
  read_card: {input: {user: string}}
  read_stock: {input: {user: string}}
  sell: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  member(user): {says: '{user} is a member.', verify: read_user(user), verdict: result.yes}
  carded(user): {says: '{user} has a card.', verify: read_card(user), verdict: result.yes}
  stocked(user): {says: 'There is one for {user}.', verify: read_stock(user), verdict: result.yes}
procedures:
  sell: {requires: {in_order: [{first: [member(user), carded(user)]}, stocked(user)]}}
"""


async def test_an_option_that_another_makes_up_for_is_not_missing() -> None:
    yes = {"read_user": False, "read_card": True}
    desk = await open_desk(TWO_WAYS, lambda name, given: {"yes": yes.get(name)}, "pg")
    await desk.start("sell", user="a")
    for action in ("read_user", "read_card"):
        await desk.call(action, user="a")
        await desk.say(yes[action], newest(desk))
    await desk.say(True)
    await desk.held("sell", "`stocked` must be true and is undecided", user="a")
    desk.tools.answers = lambda name, given: {"yes": False}
    await desk.call("read_card", user="a")
    said = "`member` must be true and is false"
    await desk.held("sell", said, "`carded` must be true and is false", "`stocked`", user="a")
