"""P14: an approval without the proof covers the facts that were unmet, and no others.

The judge is the simulated system: whether the money was moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.audit.audit import audit_trace
from sopilot.records.store import Settings
from sopilot.session import admission as _admission
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.views.answers import CallAnswer, CallStatus

WANTED = ERRANDS["transfer"]
Again = Callable[[Session, str], Awaitable[CallAnswer]]


async def call(session: Session, call_id: str) -> CallAnswer:
    return await session.call_tool("transfer", WANTED, "again")


async def run_held(session: Session, call_id: str) -> CallAnswer:
    return await session.run_held(call_id)


async def read(session: Session, balance: int) -> None:
    assert isinstance(session.tools, CountingTools)
    session.tools.balance = balance
    await session.call_tool("read_balance", {"username": "una"}, "look")


async def approved(balance: int, *, private: bool = False) -> tuple[Session, str]:
    """Everything was proven; then the balance was read again, and somebody approves it still."""
    session = await open_session(
        MemoryStore(), COUNTER, tools=CountingTools(), clock=HandClock(),
        settings=Settings(private=private),
    )  # fmt: skip
    await walk(session, "transfer", stop_at_action="transfer")
    await read(session, balance)
    answer = await session.call_tool("transfer", WANTED, "t")
    assert answer.status is CallStatus.HELD
    await session.decide("approve", answer.call_id, by="ann", role="operator")
    return session, answer.call_id


def paid(session: Session) -> int:
    assert isinstance(session.tools, CountingTools)
    return session.tools.made("transfer")


@pytest.mark.parametrize("again", [call, run_held])
@pytest.mark.parametrize("private", [False, True])
async def test_another_balance_is_another_fact(again: Again, private: bool) -> None:
    session, call_id = await approved(90, private=private)
    await read(session, 0)
    answer = await again(session, call_id)
    assert (answer.status, paid(session)) == (CallStatus.HELD, 0)
    assert answer.call_id != call_id, "people are asked anew"
    assert session.ledger.held[answer.call_id].facts != session.ledger.held[call_id].facts
    await session.decide("approve", answer.call_id, by="ann", role="operator")
    await session.call_tool("transfer", WANTED, "again")
    assert paid(session) == 1, "approved for what is so now"


@pytest.mark.parametrize("again", [call, run_held])
async def test_the_same_answer_read_again_is_the_same_fact(again: Again) -> None:
    session, call_id = await approved(90)
    await read(session, 90)
    await again(session, call_id)
    assert paid(session) == 1


async def test_a_fact_is_compared_after_a_restart_too() -> None:
    for balance, moved in ((90, 1), (0, 0)):
        session, call_id = await approved(90, private=True)
        await read(session, balance)
        store, tools = session._store, session.tools
        await session.release()
        session = await resume_session(store, session.id, tools=tools, clock=HandClock())
        await session.run_held(call_id)
        assert paid(session) == moved


async def test_what_was_false_and_is_undecided_now_is_another_fact() -> None:
    session, call_id = await approved(90)
    assert isinstance(session.tools, CountingTools)
    session.tools.refusing.add("read_balance")
    await read(session, 90)
    answer = await session.run_held(call_id)
    assert (answer.status, paid(session)) == (CallStatus.HELD, 0)


@pytest.mark.parametrize(("balance", "found"), [(90, False), (0, True)])
def test_the_audit_compares_for_itself(
    balance: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guard that takes every approval is blamed where the facts have changed."""
    monkeypatch.setattr(_admission, "_same_facts", lambda *given: True)

    async def case() -> list[Any]:
        session, call_id = await approved(90)
        await read(session, balance)
        await session.run_held(call_id)
        assert paid(session) == 1
        events = [one.event for one in session.events]
        report = audit_trace(
            session.programs.programs, events, session_id=session.id, judge=session.judge
        )
        return [one.code for one in report.findings if "ran unproven" in one.explanation]

    assert bool(asyncio.run(case())) is found
