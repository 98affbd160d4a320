"""A limit of the handbook is the handbook's: no argument that a model chooses sets it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace

import pytest
from scripted_moves import ENTER, Case, RecordingTools, call, say, start

from sopilot.agent.calls import Waiting
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolCall
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

LIMITED = """
handbook: limited
parameters: {ceiling: 100}
actions:
  read_account: {input: {user: string}}
  pay:
    input: {user: string, amount: number, note: number}
    irreversible: true
    approval: {roles: boss, when: amount > ceiling}
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  pay: {requires: "covered(user, amount)"}
"""
RICH = Case(15, "", LIMITED, lambda name, given, state: {"balance": 9999})


def test_a_handbook_whose_limit_an_input_shadows_is_refused() -> None:
    shadowed = replace(RICH, handbook=LIMITED.replace("note: number", "ceiling: number"))
    with pytest.raises(UserMistake, match="`ceiling` is a parameter of the handbook and an input"):
        shadowed.briefing()


@pytest.mark.parametrize(("amount", "paid"), [(50, True), (5000, False)])
def test_a_program_by_hand_keeps_its_limit(amount: int, paid: bool) -> None:
    """There nothing is read from a handbook: the constant is what counts all the same."""
    briefing, tools = RICH.briefing(), RecordingTools(RICH)
    programs = {
        goal: replace(
            one,
            constants={"note": 100},
            guarded=tuple(replace(each, when="amount > note") for each in one.guarded),
        )
        for goal, one in briefing.programs.items()
    }
    act: dict[str, JSON] = {"user": "ann", "amount": amount, "note": 99_999}
    check = (ENTER, call("read_account", user="ann"), say(True, "read_account"))
    moves = (start("pay", **act), *check, call("pay", **act))

    async def run() -> list[str]:
        by_hand = Briefing(briefing.handbook, programs)
        session = await open_run(MemoryStore(), by_hand, VIEWS["pg"], tools=tools)
        driver = Driver(session, by_hand, VIEWS["pg"])
        for number, move in enumerate(moves):
            written = json.dumps(dict(move.arguments))
            with suppress(Waiting):
                await driver.call(ToolCall(f"c{number}", move.tool, written))
        report = audit_trace(programs, await session.whole_events(), judge=judge, ended=False)
        return [one.code for one in report.findings if one.severity == "error"]

    assert asyncio.run(run()) == []
    assert bool(tools.carried_out) is paid
