"""One line about a session, whatever it has come to."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Fail


async def nothing(session: Session) -> None:
    pass


async def renamed(session: Session) -> None:
    await walk(session, "rename")


async def under_way(session: Session) -> None:
    await walk(session, "rename", stop_at_action="rename")


async def refused(session: Session) -> None:
    await under_way(session)
    await session.step(Fail("no"))


async def waits(session: Session) -> None:
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", ERRANDS["wire"], "w")


async def lost(session: Session) -> None:
    tools = session.tools
    assert isinstance(tools, CountingTools)
    tools.failing.add("transfer")
    await walk(session, "transfer", stop_at_action="transfer")
    await session.call_tool("transfer", ERRANDS["transfer"], "t")


async def waited_and_refused(session: Session) -> None:
    await waits(session)
    await session.step(Fail("no"))


@pytest.mark.parametrize(
    ("happens", "status", "goal", "waiting", "framed"),
    [
        (nothing, "new", "", [], False),
        (renamed, "completed", "rename", [], False),
        (under_way, "running", "rename", [], True),
        (refused, "refused", "rename", [], False),
        (waits, "waiting", "wire", ["w"], True),
        (waited_and_refused, "refused", "wire", ["w"], False),
        (lost, "unknown", "transfer", [], True),
    ],
)
async def test_how_a_session_stands(
    happens: Any, status: str, goal: str, waiting: list[str], framed: bool
) -> None:
    store = MemoryStore()
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=HandClock())
    await happens(session)
    told = (await store.record(session.id)).summary
    assert (told["status"], told["goal"], told["waiting"]) == (status, goal, waiting)
    assert bool(told["frame"]) is framed
    assert told["open"] == []
