"""What a held call says is missing, where there are alternatives and groups."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import AttackDesk, open_desk

from sopilot.program.model import Kind
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
    assert "`plausible` must be true, but is undecided" in answer.problem


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
    await desk.held("sell", "`stocked` must be true, but is undecided", user="a")
    desk.tools.answers = lambda name, given: {"yes": False}
    await desk.call("read_card", user="a")
    said = "`member` must be true, but is false"
    await desk.held("sell", said, "`carded` must be true, but is false", "`stocked`", user="a")


@pytest.mark.parametrize("known", ["a", "b", ""])
async def test_no_option_is_lost_beside_one_that_needs_no_tool(known: str) -> None:
    """Of three options two are verified by tools, and the third by the arguments alone."""
    text = """
handbook: till
actions:
  ask_a: {input: {user: string}, read_only: true}
  ask_b: {input: {user: string}, read_only: true}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  a(user): {says: a, verify: ask_a(user), verdict: result.yes}
  b(user): {says: b, verify: ask_b(user), verdict: result.yes}
  small(amount): {says: c, verify: arguments, verdict: amount < 5}
procedures:
  pay: {requires: {any: [a(user), b(user), small(amount)]}}
"""

    desk = await open_desk(text, lambda action, given: {"yes": action[-1] == known}, "pg")
    await desk.start("pay", user="ann", amount=9)
    for action in ("ask_a", "ask_b"):
        await desk.call(action, user="ann")
    await desk.push()
    answer = await desk.call("pay", user="ann", amount=9)
    assert (answer.status is CallStatus.DONE) == bool(known), answer.problem


async def test_what_is_missing_is_named_inside_of_groups_too() -> None:
    text = """
handbook: till
actions:
  ask_a: {input: {user: string}, read_only: true}
  ask_b: {input: {user: string}, read_only: true}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  a(user): {says: a, verify: ask_a(user), verdict: result.yes}
  b(user): {says: b, verify: ask_b(user), verdict: result.yes}
  c(user): {says: c, verify: ask_a(user), verdict: result.no}
procedures:
  pay: {requires: {all: [c(user), {any: [{all: [a(user), b(user)]}, b(user)]}]}}
"""

    desk = await open_desk(text, lambda action, given: {"yes": False, "no": True}, "pg")
    await desk.start("pay", user="ann")
    await desk.call("ask_a", user="ann")
    await desk.push()
    held = await desk.call("pay", user="ann")
    assert held.status is CallStatus.HELD
    assert "`b` must be true, but is undecided" in held.problem


async def test_of_a_group_that_is_met_nothing_is_named_as_missing() -> None:
    """Who decides without the proof decides about what is missing, and about nothing else."""
    options = [f"p{number}(user)" for number in range(8)]
    text = "\n".join(
        [
            "handbook: till",
            "actions:",
            *(f"  ask{n}: {{input: {{user: string}}, read_only: true}}" for n in range(9)),
            "  pay: {input: {user: string}, irreversible: true, confirm: false}",
            "predicates:",
            *(
                f"  p{n}(user): {{says: x, verify: ask{n}(user), verdict: result}}"
                for n in range(9)
            ),
            "procedures:",
            f"  pay: {{requires: {{all: [{{any: [{', '.join(options)}]}}, p8(user)]}}}}",
        ]
    )

    desk = await open_desk(text, lambda action, given: action in ("ask0", "ask7"), "pg")
    functions = desk.session.machine.programs.layouts["pay"].program.functions.values()
    assert Kind.GROUP in {one.kind for one in functions}
    await desk.start("pay", user="ann")
    for number in range(9):
        await desk.call(f"ask{number}", user="ann")
    await desk.push()
    held = await desk.call("pay", user="ann")
    assert held.status is CallStatus.HELD
    assert "`p8` must be true, but is false" in held.problem
    assert "`p1`" not in held.problem
    assert "was not done" not in held.problem  # nor the act itself
