"""Promises of sessions that little would show if they were broken: one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.approvals import HeldState
from sopilot.machine.layout import Limits
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.state import Configuration
from sopilot.messages.errors import RunEnded, TraceError, UserMistake
from sopilot.protocols import ToolResult
from sopilot.records.loading import _replay
from sopilot.records.reminders import due_calls
from sopilot.session.decisions import resolve_when_free
from sopilot.session.opening import open_session, resume_session
from sopilot.session.outcomes import read_failure
from sopilot.session.questions import UNASKED, find_question
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Note
from sopilot.values.json import JSON

Case = Callable[[MemoryStore, HandClock], Awaitable[None]]


def run(case: Case) -> None:
    async def soon() -> None:
        await asyncio.wait_for(case(MemoryStore(), HandClock()), 20)

    asyncio.run(soon())


async def opened(store: MemoryStore, clock: HandClock, **given: Any) -> Session:
    more: dict[str, Any] = {"tools": CountingTools(), "session_id": "s", **given}
    return await open_session(store, COUNTER, clock=clock, **more)


def programs_of(text: str) -> ProgramSet:
    return ProgramSet(
        {name: one.program for name, one in compile_handbook(load_handbook(text)).items()}
    )


# --- whose session it is --------------------------------------------------------------


def test_what_the_store_may_know_better_is_read_again_while_the_lease_still_runs() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
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

    run(case)


def test_who_could_not_begin_to_write_stands_in_nobodys_way() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await one.release()
        for _ in range(2):
            with pytest.raises(RunEnded, match="was released"):
                await asyncio.wait_for(one.operate(Note("seen", {})), 2)
        await asyncio.wait_for(one.reacquire(), 2)
        await one.operate(Note("seen", {}))

    run(case)


def test_who_waits_for_a_decision_leaves_the_session_to_others() -> None:
    """It is taken back when there is something to read, or when the time is over."""

    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "wire", stop_at_action="wire")
        held = (await one.call_tool("wire", ERRANDS["wire"], "w")).held
        assert held is not None
        acquire, taken, naps = store.acquire, [], []

        async def seen(*given: Any, **more: Any) -> Any:
            taken.append(len(naps))
            return await acquire(*given, **more)

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            clock.advance(seconds)

        store.acquire = seen  # type: ignore[method-assign]
        await one.wait_for_decision(
            held.call_id, poll_seconds=1.0, timeout_seconds=5.0, sleep=sleep
        )
        assert taken == [5]

    run(case)


# --- who asks, and who decides --------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "who"),
    [
        ({"requester": "sue"}, "sue"),
        ({}, None),
    ],
)
def test_who_asked_for_it_does_not_approve_it(given: Any, who: str | None) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
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

    run(case)


def test_what_people_let_through_without_its_proof_is_on_record_as_a_claim() -> None:
    """The balance is too small, and an operator says yes all the same."""

    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock, tools=CountingTools(balance=5))
        await walk(one, "transfer", stop_at_action="transfer")
        answer = await one.call_tool("transfer", ERRANDS["transfer"], "t")
        assert answer.result is None
        await one.decide("approve", answer.call_id, by="sue", role="operator")
        assert (await one.call_tool("transfer", ERRANDS["transfer"], "t")).result is not None
        (made,) = [
            sealed.event.payload
            for sealed in one.events
            if sealed.event.kind == "domain_call" and sealed.event.payload["action"] == "transfer"
        ]
        assert made["licence"]["grade"] == "claimed"
        assert made["licence"]["missing"]

    run(case)


def test_how_long_before_it_expires_a_call_is_due() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "wire", stop_at_action="wire")
        await one.call_tool("wire", ERRANDS["wire"], "w")
        for minutes, due in ((60.0, 1), (59.9, 0), (59.1, 0), (None, 1)):
            assert len(await due_calls(store, minutes, clock=clock)) == due, minutes
        clock.advance(3540)
        for minutes, due in ((1.0, 1), (0.99, 0)):
            assert len(await due_calls(store, minutes, clock=clock)) == due, minutes

    run(case)


def test_who_says_how_a_call_ended_hears_what_is_still_unknown() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
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

    run(case)


def test_a_decision_that_was_left_is_noticed() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        assert await one.has_decisions() is False
        left: dict[str, JSON] = {"decision": "approve", "call_id": "w", "by": "sue"}
        await store.queue_decision("s", left, at=clock.now())
        assert await one.has_decisions() is True

    run(case)


def test_what_may_have_been_carried_out_is_no_answer_whatever_it_says() -> None:
    """A look-up that finds nothing says so by failing; one that broke off says nothing."""
    programs = programs_of(LOOKING)
    stands: Any = SimpleNamespace(programs=programs, judge=judge)
    for unknown in (False, True):
        told = ToolResult(False, {"error": "none"}, unknown=unknown)
        result = read_failure(stands, "look", told)
        assert (result.ok, result.unknown) == (not unknown, unknown)


LOOKING = """
handbook: desk
actions:
  look: {input: {user: string}, reads: [money], not_found: result.error == 'none'}
  pay: {input: {user: string}, irreversible: true}
predicates:
  fine(user): {says: F., verify: look(user), verdict: result.ok}
procedures:
  pay: {requires: fine(user)}
"""


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


def test_where_nobody_can_ask_the_user_nothing_was_answered() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await open_session(store, programs_of(ASKING), tools=CountingTools(), clock=clock)
        assert one.asker is None
        asked = {"question": "wants", "user": "ann"}
        result = (await one.call_tool("ask_user", asked, "q")).result
        assert result is not None
        assert (result.ok, result.value) == (False, {"error": UNASKED})

    run(case)


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


def test_events_of_which_none_can_be_named_are_refused_in_plain_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> Configuration:
        raise TraceError("these are no events")

    monkeypatch.setattr("sopilot.records.loading.replay", refuse)
    for offset in (0, 7):
        with pytest.raises(TraceError) as refused:
            _replay(COUNTER, Limits(), Configuration(), [], offset)
        assert (str(refused.value), refused.value.index) == ("these are no events", None)
