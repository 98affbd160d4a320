"""What becomes of sessions that are taken up, and of what stands beside them: case by case."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from desk_by_hand import SET, opened

from counter_desk import COUNTER, ERRANDS, HandClock
from sopilot.agent.toolbox import END_SESSION
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.records.journal import write
from sopilot.records.loading import load
from sopilot.records.store import NewSession
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Note, Start
from sopilot.values.json import JSON

# --- programs that others wrote -------------------------------------------------------


async def test_other_programs_must_be_released_as_well() -> None:
    store, clock = MemoryStore(), HandClock()
    await opened(store, clock, handbook="desk")
    said: dict[str, JSON] = {"what": "sign-off", "on": True}
    await write(store, "people", "demanded", said, clock=clock)
    clock.advance(60)
    with pytest.raises(UserMistake, match="desk"):
        await resume_session(store, "s", clock=clock, programs=SET, accept_changed=True)
    assert (await resume_session(store, "s", clock=clock, programs=COUNTER)).head.seq == 0


async def test_what_was_created_and_never_begun_is_begun_when_it_is_taken_up() -> None:
    store, clock = MemoryStore(), HandClock()
    one = await opened(store, clock)
    kept = await store.record("s")
    other = NewSession("t", kept.metadata, {})
    lease = await store.create(other, owner="x", now=clock.now(), lease_seconds=1)
    await store.release(lease)
    seen: list[int] = []

    async def before(session: Session) -> None:
        seen.append(len(session.events))

    back = await resume_session(store, "t", tools=one.tools, clock=clock, before=before)
    assert (seen, back.events[0].event.payload["name"]) == ([1], "opened")
    await back.operate(Start("rename", ERRANDS["rename"]))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model", "b", "the store says another `model` of session s than its trace"),
        ("handbook", "b", "the store says another `handbook` of session s than its trace"),
        ("requester", "b", "the store says another `requester` of session s than its trace"),
        ("goals", [], "the store says another `goals` of session s than its trace"),
        ("view", None, ""),
        ("salt", "xyz", "the salt of session s is damaged"),
        ("programs", 5, "session s does not name its programs"),
        ("extra", {"a": 1}, ""),
    ],
)
async def test_what_stands_beside_the_chain_is_what_it_began_with(
    name: str, value: JSON, says: str
) -> None:
    store, clock = MemoryStore(), HandClock()
    await opened(store, clock, model="a")
    kept = store._sessions["s"]
    kept.metadata = {**kept.metadata, name: value}
    with pytest.raises(StoreCorrupt, match=says) if says else nullcontext():
        await load(store, "s")


async def nothing_runs(one: Session) -> None:
    await one.call_tool("rename", ERRANDS["rename"], "r")


async def ended(one: Session) -> None:
    await nothing_runs(one)
    await one.operate(Note(END_SESSION, {}))


async def only_ended(one: Session) -> None:
    await one.operate(Note(END_SESSION, {}))


@pytest.mark.parametrize(
    ("happens", "status", "goal"),
    [(nothing_runs, "running", "rename"), (ended, "ended", "rename"), (only_ended, "ended", "")],
)
async def test_how_a_session_without_a_machine_stands(happens: Any, status: str, goal: str) -> None:
    store, clock = MemoryStore(), HandClock()
    one = await opened(store, clock)
    await happens(one)
    told = (await store.record("s")).summary
    assert (told["status"], told["goal"], told["frame"]) == (status, goal, "")
