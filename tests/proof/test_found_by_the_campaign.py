"""Holes that ten million moves found: a call asked again with more than it takes, an amendment
that is another act, one evidence under two names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from attack_desk import errors, open_desk

from sopilot.trace.events import Call, Complete
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

FROZEN = """
handbook: x
actions:
  look_up: {input: {user: string, day: {type: string, required: false}}}
  pay: {input: {user: string}, irreversible: true}
predicates:
  fine(user): {says: fine, verify: look_up(user), verdict: result.fine}
procedures:
  pay: {requires: fine(user)}
"""


@pytest.mark.parametrize(
    ("more", "held"), [({"loudly": True}, True), ({"user ": "u"}, True), ({"day": "monday"}, False)]
)
async def test_an_answer_to_the_same_call_and_something_more_is_newer(
    more: dict[str, JSON], held: bool
) -> None:
    """What an action declares makes it another call; what it does not know makes no difference."""

    world = {"fine": True}
    desk = await open_desk(FROZEN, lambda name, given: dict(world), "pg")
    await desk.start("pay", user="u")
    await desk.push({"look_up": {"user": "u"}})
    world["fine"] = False
    await desk.call("look_up", user="u", **more)
    answer = await desk.call("pay", user="u")
    assert answer.status is (CallStatus.HELD if held else CallStatus.DONE)
    if held:
        assert "called again with more than it takes" in answer.problem
        world["fine"] = True
        await desk.call("look_up", user="u")
        await desk.done("pay", user="u")
    await desk.session.operate(Complete())
    assert errors(desk.session) == []


TWICE = """
handbook: x
actions:
  look_up: {input: {user: string}}
  move:
    input:
      owner: string
      to: {type: string, required: false}
      why: string
    irreversible: true
    approval: boss
predicates:
  fine(user): {says: fine, verify: look_up(user), verdict: result.fine}
procedures:
  move:
    requires: fine(friend)
    action: move(owner=friend, to=friend, why="a gift")
"""
MOVE = {"owner": "u", "to": "u", "why": "a gift"}


@pytest.mark.parametrize(
    ("amended", "runs"),
    [
        (MOVE, True),
        ({**MOVE, "owner": "w", "to": "w"}, True),
        ({"owner": "u", "why": "a gift"}, False),
        ({**MOVE, "to": "w"}, False),
        ({**MOVE, "owner": "w"}, False),
        ({**MOVE, "why": "a loan"}, False),
    ],
)
async def test_an_amendment_is_the_act_of_the_procedure(
    amended: dict[str, JSON], runs: bool
) -> None:
    desk = await open_desk(TWICE, lambda name, given: {"fine": True}, "pg")
    await desk.call("look_up", user="w")
    await desk.start("move", friend="u")
    await desk.push({"look_up": {"user": "u"}})
    session = desk.session
    held = (await desk.call("move", **MOVE)).held
    assert held is not None
    await session.decide("amend", held.call_id, by="bo", role="boss", arguments=amended)
    answer = await session.run_held(held.call_id)
    assert answer.status is (CallStatus.DONE if runs else CallStatus.HELD)
    assert bool(desk.made("move")) is runs
    if runs:
        await session.operate(Complete())
    assert errors(session) == []


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
    first_waits = asyncio.Event()
    asked: list[str] = []

    async def later() -> JSON:
        await first_waits.wait()
        return {"ok": True}

    def world(name: str, given: Mapping[str, JSON]) -> Any:
        asked.append(name)
        return later() if len(asked) == 2 else {"ok": True}

    desk = await open_desk(SERVED, world, "pg")
    await desk.call("serve", user="u")
    first = asyncio.create_task(desk.call("serve", user="w"))
    while len(asked) < 2:
        await asyncio.sleep(0)
    await desk.call("serve", user="w")  # asked for later, answered earlier
    first_waits.set()
    await first
    await desk.start("redeem", user="u")
    await desk.push()
    await desk.done("redeem", user="u")
    await desk.session.operate(Complete())
    assert errors(desk.session) == []


OBJECT = """
handbook: x
actions:
  look_up: {input: {where: object}}
  move: {input: {where: object}, irreversible: true}
predicates:
  fine(where): {says: fine, verify: look_up(where), verdict: result.fine}
procedures:
  move: {requires: fine(where)}
"""


async def test_a_value_that_looks_withheld_is_no_other_errand() -> None:
    """The audit cannot tell it from a value that was withheld, and accuses nobody."""

    odd: JSON = {"$ref": "0" * 64, "bytes": 3}
    desk = await open_desk(OBJECT, lambda name, given: {"fine": True}, "pg")
    for where in (odd, {"country": None}, {"country": "ch"}, odd):
        assert (await desk.start("move", where=where)).accepted
    assert "inconsistent-trace" not in errors(desk.session)
    assert len(desk.session.configuration.processes) == 3


LINKED = """
handbook: x
actions:
  find: {input: {where: object}}
  look_up: {input: {where: object}}
  move: {input: {where: object}, irreversible: true}
predicates:
  fine(where):
    says: fine
    verify: {all: [find(where), look_up(find.where)]}
    verdict: results.look_up.fine
procedures:
  move: {requires: fine(where)}
"""
ODD: JSON = {"$ref": "0" * 64, "bytes": 3}
CLEAR: JSON = {"country": "ch"}


@pytest.mark.parametrize("handbook", [OBJECT, LINKED])
@pytest.mark.parametrize(("meant", "asked"), [(ODD, CLEAR), (CLEAR, ODD), (ODD, ODD)])
async def test_what_looks_withheld_is_another_value_where_the_trace_says_so(
    handbook: str, meant: JSON, asked: JSON
) -> None:
    """The machine knows that the call was not the one it waits for, and stays where it is."""

    first = "find" if handbook is LINKED else "look_up"
    world = {"fine": True, "where": meant}
    desk = await open_desk(handbook, lambda name, given: dict(world), "pg")
    await desk.start("move", where=meant)
    await desk.session.operate(Call())
    await desk.call(first, where=asked)
    if handbook is LINKED:
        for other in (CLEAR, ODD):
            await desk.call("look_up", where=other)
    assert "inconsistent-trace" not in errors(desk.session)
