"""What sessions write once in a thousand lives, ask and keep secret: case by case."""

from __future__ import annotations

from typing import Any

import pytest
from desk_by_hand import PROGRAMS, opened

from counter_desk import HandClock, walk
from sopilot.messages.errors import RunEnded, StoreCorrupt, TraceBroken, UserMistake
from sopilot.records.journal import entries, write
from sopilot.records.log import PREFIX
from sopilot.records.privacy import change_policy, erase_wanted, load_policy
from sopilot.records.store import Settings
from sopilot.session.questions import find_question
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, genesis, seal_all
from sopilot.trace.events import Event
from sopilot.values.json import JSON
from sopilot.views.questions import user_tools

# --- what is written ------------------------------------------------------------------


async def test_journals_that_somebody_touched() -> None:
    store, clock = MemoryStore(), HandClock()
    assert await entries(store, "diary") == []
    assert await write(store, "diary", "said", {"a": 1}, clock=clock) == 0
    assert await write(store, "diary", "kept", {}, clock=clock, beside={"b": 2}) == 1
    first, second = await entries(store, "diary")
    assert (first.number, first.name, dict(first.details)) == (0, "said", {"a": 1})
    assert {name: second.details["beside"][name] for name in ("b",)} == {"b": 2}
    assert len(second.details["beside"]["salt"]) == 32
    kept = store._sessions[PREFIX + "diary"]
    whole = list(kept.events)
    kept.events[:] = whole[:1]
    with pytest.raises(TraceBroken):
        await entries(store, "diary")
    kept.events[:] = whole
    odd = Event(0, 0.0, "model", "user_said", None, "", {"text": "x"})
    kept.events[:] = seal_all([odd], genesis(PREFIX + "diary"))
    kept.head = Head(PREFIX + "diary", 0, kept.events[0].hash)
    with pytest.raises(StoreCorrupt, match=r"event 0 of journal\.diary is no note"):
        await entries(store, "diary")
    lease = await store.acquire(PREFIX + "diary", owner="x", now=clock.now(), lease_seconds=99)
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sopilot.records.journal.asyncio.sleep", sleep)
        with pytest.raises(RunEnded, match=r"journal.diary is being written by others"):
            await write(store, "diary", "said", {}, clock=clock)
    assert len(naps) > 3
    await store.release(lease)


async def test_holds_are_set_lifted_and_forgotten() -> None:
    store, clock = MemoryStore(), HandClock()

    async def change(name: str, **details: JSON) -> None:
        await change_policy(store, name, details, who=None, clock=clock)

    for what in ("una", "una", "bob"):
        await change("hold_set", what=what, why="court")
    assert dict((await load_policy(store)).holds) == {"una": "court", "bob": "court"}
    with pytest.raises(UserMistake, match="there is no hold on `eve`"):
        await change("hold_lifted", what="eve")
    await change("hold_lifted", what="una")
    assert dict((await load_policy(store)).holds) == {"bob": "court"}
    lifted = (await entries(store, "privacy"))[-1]
    assert lifted.details["holds"] == [0, 1]
    one = await opened(store, clock, settings=Settings(private=True))
    await walk(one, "rename")
    await one.release()
    asked: dict[str, Any] = {
        "session_ids": (), "due": False, "who": None, "clock": clock,
    }  # fmt: skip
    with pytest.raises(UserMistake, match="names who is to be erased"):
        await erase_wanted(store, subjects=["una"], why="UNA asked", **asked)
    emptied: list[Any] = []
    erase = store.erase

    async def seen(metadata: Any, recorded: Any = None) -> None:
        emptied.append(sorted(metadata))
        await erase(metadata, recorded)

    store.erase = seen  # type: ignore[method-assign]
    done = await erase_wanted(store, subjects=["una"], why="asked", **asked)
    assert (done.erased, emptied) == (("s",), [["s"]])
    words = [one.details["beside"] for one in (await entries(store, "privacy"))[:3]]
    assert [one.get("what") for one in words] == [None, None, "bob"]
    assert dict((await load_policy(store)).holds) == {"bob": "court"}
    await change("hold_lifted", what="bob")
    done = await erase_wanted(store, subjects=["7"], why="asked", **asked)
    assert emptied == [["s"]]  # a digest that has the text in it names nobody
    done = await erase_wanted(store, subjects=["BOB"], why="asked", **asked)
    assert (done.erased, emptied) == ((), [["s"], []])
    await change("hold_set", what="cy", why="court")
    store._sessions[PREFIX + "privacy"].payloads.clear()
    with pytest.raises(StoreCorrupt, match="a legal hold has lost its words"):
        await load_policy(store)


# --- what users are asked -------------------------------------------------------------


def test_the_words_of_a_question() -> None:
    programs = list(PROGRAMS.values())
    tools = {one.name: one for one in user_tools(programs)}
    assert sorted(tools) == ["ask_user", "confirm_with_user"]
    asked = tools["confirm_with_user"].parameters
    assert (asked["required"], asked["additionalProperties"]) == (["action"], False)
    subject = {name: {} for name in asked["properties"]}
    subject["action"] = {"type": "string"}
    assert asked["properties"] == subject
    names = [name for name in subject if name not in ("action", "procedure")]
    given: dict[str, JSON] = {"action": "pay"}
    if "procedure" in subject:
        given["procedure"] = "pay"
    for name in names:
        given[name] = 5 if name.endswith("amount") else "änn"
    question = find_question(programs, "confirm_with_user", given)
    assert question is not None
    first, second, third = question.text.split("\n")
    assert (first, third) == ("5 for änn.", "yes / no?")
    assert second.startswith("pay (")
    assert '"änn"' in second
    assert find_question(programs, "confirm_with_user", {**given, "action": "give"}) is None
    assert find_question(programs, "confirm_with_user", {**given, "more": 1}) is None
    wants = {"question": "wants", "user": "änn"}
    ask = tools["ask_user"].parameters
    assert ask["required"] == ["question"]
    exact = {name: wants.get(name, "änn") for name in ask["properties"]}
    assert find_question(programs, "ask_user", exact) == ("Do you want it, änn?", True)
    assert find_question(programs, "ask_user", {**exact, "question": "odd"}) is None
    assert find_question(programs, "confirm_with_user", exact) is None


# --- secrets --------------------------------------------------------------------------
