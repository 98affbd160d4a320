"""Promises of sessions that little would show if they were broken: one by one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.approvals import HeldState
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.session.decisions import resolve_when_free
from sopilot.session.opening import open_session, resume_session
from sopilot.session.questions import UNASKED, find_question
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Note
from sopilot.values.json import JSON


async def opened(store: MemoryStore, clock: HandClock, **given: Any) -> Session:
    more: dict[str, Any] = {"tools": CountingTools(), "session_id": "s", **given}
    return await open_session(store, COUNTER, clock=clock, **more)


def programs_of(text: str) -> ProgramSet:
    return ProgramSet(
        {name: one.program for name, one in compile_handbook(load_handbook(text)).items()}
    )


# --- whose session it is --------------------------------------------------------------


async def test_what_the_store_may_know_better_is_read_again_while_the_lease_still_runs() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await opened(store, clock)
    assert await one.refresh() is False
    append = store.append

    async def kept_and_cut_off(*given: Any, **more: Any) -> Any:
        await append(*given, **more)
        raise ConnectionError("reset")

    store.append = kept_and_cut_off  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        await one.operate(Note("seen", {}))
    store.append = append  # type: ignore[method-assign]
    before = len(one.events)
    assert one.is_current is False
    assert await one.refresh() is True
    assert one.is_current is True
    assert len(one.events) == before + 1
    assert await one.refresh() is False


async def test_who_could_not_begin_to_write_stands_in_nobodys_way() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await opened(store, clock)
    await one.release()
    for _ in range(2):
        with pytest.raises(RunEnded, match="was released"):
            await asyncio.wait_for(one.operate(Note("seen", {})), 2)
    await asyncio.wait_for(one.reacquire(), 2)
    await one.operate(Note("seen", {}))


# --- who asks, and who decides --------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "who"),
    [
        ({"requester": "sue"}, "sue"),
        ({}, None),
    ],
)
async def test_who_asked_for_it_does_not_approve_it(given: Any, who: str | None) -> None:
    store, clock = MemoryStore(), HandClock()
    one = await opened(store, clock, **given)
    assert one.metadata.get("requester") == who
    await walk(one, "refund", stop_at_action="refund")
    await one.call_tool("refund", ERRANDS["refund"], "r")
    if who is not None:
        with pytest.raises(UserMistake):
            await one.decide("approve", "r", by="sue", role="supervisor")
        assert one.ledger.held["r"].state is HeldState.WAITING
    else:
        await one.decide("approve", "r", by="sue", role="supervisor")
        assert one.ledger.held["r"].state is HeldState.APPROVED


async def test_who_says_how_a_call_ended_hears_what_is_still_unknown() -> None:
    store, clock = MemoryStore(), HandClock()
    tools = CountingTools()
    tools.failing.add("transfer")
    one = await opened(store, clock, tools=tools)
    await walk(one, "transfer", stop_at_action="transfer")
    await one.call_tool("transfer", ERRANDS["transfer"], "t")
    assert one.unknown_outcomes == ("t",)
    await one.release()
    assert await resolve_when_free(store, "s", "t", ok=True, by="sue") == ()
    back = await resume_session(store, "s", tools=tools, clock=clock)
    assert back.unknown_outcomes == ()
    await go_on(back)


# --- what users are asked -------------------------------------------------------------

ASKING = """
handbook: desk
actions:
  pay: {input: {user: string}, irreversible: true}
predicates:
  wants(user): {says: W., verify: user, question: "Do you want it, {user}?"}
procedures:
  pay: {requires: wants(user)}
"""


async def test_where_nobody_can_ask_the_user_nothing_was_answered() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await open_session(store, programs_of(ASKING), tools=CountingTools(), clock=clock)
    assert one.asker is None
    asked = {"question": "wants", "user": "ann"}
    result = (await one.call_tool("ask_user", asked, "q")).result
    assert result is not None
    assert (result.ok, result.value) == (False, {"error": UNASKED})


THRICE = """
handbook: desk
actions:
  pay: {input: {user: string}, irreversible: true, confirm: "A payment for {user}."}
predicates:
  known(user): {says: K., verify: arguments, verdict: user != ''}
procedures:
  pay: {requires: known(user)}
  tip: {action: pay, requires: known(user), confirm: "A tip for {user}."}
  gift: {action: pay, requires: known(user), confirm: "A gift for {user}."}
"""


def test_each_procedure_asks_for_its_own_yes() -> None:
    """Three do the same thing, and two tell the user of it in words of their own."""
    programs = programs_of(THRICE).programs.values()

    def first_line(**given: JSON) -> str:
        asked = {"action": "pay", "user": "ann", **given}
        question = find_question(programs, "confirm_with_user", asked)
        return question.text.split("\n")[0] if question is not None else ""

    assert first_line() == "A payment for ann."
    assert first_line(procedure="tip") == "A tip for ann."
    assert first_line(procedure="gift") == "A gift for ann."
    assert first_line(procedure="loan") == ""


# --- programs and traces --------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "reads"),
    [("now > '2026'", True), ("amount > 5", False), (None, False)],
)
def test_a_condition_for_asking_people_may_read_the_clock(when: str | None, reads: bool) -> None:
    program = COUNTER.programs["refund"]
    guarded = tuple(replace(one, when=when) for one in program.guarded)
    assert guarded
    assert ProgramSet({"refund": replace(program, guarded=guarded)}).reads_clock is reads
