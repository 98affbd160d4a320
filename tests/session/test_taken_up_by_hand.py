"""What becomes of sessions that are taken up, and of what stands beside them: case by case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from desk_by_hand import PROGRAMS, SET, opened, run

from counter_desk import COUNTER, ERRANDS, HandClock, walk
from sopilot.agent.toolbox import END_SESSION
from sopilot.handbook.expressions import judge
from sopilot.machine.machine import Machine
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.program.model import Act, Guarded
from sopilot.protocols import ToolResult, ToolSchema, inputs_of, required_of
from sopilot.records.journal import write
from sopilot.records.loading import load
from sopilot.records.log import digest_of
from sopilot.records.sealing import _differ, _is_under_key
from sopilot.records.store import NewSession, Settings
from sopilot.session.admission import _asked_of_people, _read_again
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Note, Start
from sopilot.values.json import JSON

# --- programs that others wrote -------------------------------------------------------


def test_other_programs_must_be_released_as_well() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await opened(store, clock, handbook="desk")
        said: dict[str, JSON] = {"what": "sign-off", "on": True}
        await write(store, "people", "demanded", said, clock=clock)
        clock.advance(60)
        with pytest.raises(UserMistake, match="desk"):
            await resume_session(store, "s", clock=clock, programs=SET, accept_changed=True)
        assert (await resume_session(store, "s", clock=clock, programs=COUNTER)).head.seq == 0

    run(case)


def test_what_was_created_and_never_begun_is_begun_when_it_is_taken_up() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
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

    run(case)


@pytest.mark.parametrize(
    ("clock", "when", "said", "needed"),
    [
        ("", None, False, 1), ("", "a", False, 0), ("", "a", True, 1), ("", "a", None, 1),
        ("noon", "a", False, 0), ("", "a", "odd", 1),
    ],
)  # fmt: skip
def test_whether_people_are_asked_for_it(
    clock: str, when: str | None, said: Any, needed: int
) -> None:
    asked: list[Any] = []

    def judged(expression: str, variables: Mapping[str, Any]) -> bool | None:
        asked.append((expression, dict(variables)))
        if said == "odd":
            raise UserMistake("odd")
        return bool(said) if said is not None else None

    process = SimpleNamespace(goal="pay")
    program = replace(PROGRAMS["pay"], constants={"limit": 5, "amount": 0})
    stands: Any = SimpleNamespace(
        configuration=SimpleNamespace(clock=clock, process=process), judge=judged,
        programs=SimpleNamespace(programs={"pay": program}),
    )  # fmt: skip
    guarded = Guarded("pay", roles=("boss",), needed=1, when=when)
    assert _asked_of_people(stands, guarded, {"amount": 7}).needed == needed
    now = {"now": clock} if clock else {}
    assert asked == ([] if when is None else [("a", {**now, "limit": 5, "amount": 0})])
    stands.configuration.process = None
    asked.clear()
    _asked_of_people(stands, guarded, {"amount": 7})
    assert asked == ([] if when is None else [("a", {**now, "amount": 7})])


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
def test_what_stands_beside_the_chain_is_what_it_began_with(
    name: str, value: JSON, says: str
) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await opened(store, clock, model="a")
        kept = store._sessions["s"]
        kept.metadata = {**kept.metadata, name: value}
        with pytest.raises(StoreCorrupt, match=says) if says else nullcontext():
            await load(store, "s")

    run(case)


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
def test_how_a_session_without_a_machine_stands(happens: Any, status: str, goal: str) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await happens(one)
        told = (await store.record("s")).summary
        assert (told["status"], told["goal"], told["frame"]) == (status, goal, "")

    run(case)


class Register:
    """A store's register, of which the rows differ for a while."""

    def __init__(self, wrong: int, moving: int) -> None:
        self.wrong, self.moving, self.read = wrong, moving, 0
        self.records = self

    async def digests(self) -> dict[str, str]:
        self.read += 1
        return {"s": "other" if self.read <= self.wrong else digest_of([])}

    async def record(self, _: str) -> Any:
        return SimpleNamespace(head=1 if self.read <= self.moving else 0)

    async def loaded(self, _: str) -> Any:
        return SimpleNamespace(record=SimpleNamespace(head=0))

    def rows_of(self, _: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("wrong", "moving", "differ", "read"),
    [(0, 0, False, 1), (9, 0, True, 1), (3, 9, False, 4), (9, 3, True, 4), (99, 99, True, 20)],
)
def test_rows_are_read_again_while_somebody_goes_on(
    wrong: int, moving: int, differ: bool, read: int
) -> None:
    register: Any = Register(wrong, moving)
    assert asyncio.run(_differ(register, register, "s")) is differ
    assert register.read == read


def test_what_is_under_a_key_is_all_there() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock, settings=Settings(private=True))
        await walk(one, "rename")
        loaded = await load(store, "s")
        kept = store._sessions["s"].payloads
        assert await _is_under_key(store, loaded) is False
        store._sessions["s"].payloads = {ref: {"locked": "x"} for ref in kept}
        assert await _is_under_key(store, loaded) is True
        store._sessions["s"].payloads.popitem()
        assert await _is_under_key(store, loaded) is False

    run(case)


def test_what_a_tool_takes() -> None:
    tool = ToolSchema("t", "", {"properties": {"a": {}}, "required": ["a", 5]})
    assert (dict(inputs_of(tool)), list(required_of(tool))) == ({"a": {}}, ["a", "5"])
    for odd in ({}, {"properties": 5, "required": "a"}, {"properties": None, "required": None}):
        other = ToolSchema("t", "", odd)
        assert (dict(inputs_of(other)), list(required_of(other))) == ({}, [])


async def test_a_reading_that_breaks_off_is_no_answer() -> None:
    """What the machine reads again just before a call, and cannot reach, is not known."""

    steps: list[Any] = []

    async def step(operation: Any, actor: str = "") -> None:
        steps.append((operation, actor))

    async def broken(*_: Any, **__: Any) -> ToolResult:
        raise ConnectionError("reset")

    ledger = SimpleNamespace(fresh_id=lambda _: "c9", answered={"c9": 5})
    stands: Any = SimpleNamespace(
        tools=SimpleNamespace(call=broken), id="s", ledger=ledger, step=step, unrecorded={},
        programs=SET, judge=judge, machine=Machine(PROGRAMS),
    )  # fmt: skip
    call: Any = SimpleNamespace(act=Act("look", "look"), arguments={"user": "ann"})
    await _read_again(stands, call)
    (asked, actor), (told, _) = steps
    assert (asked.action, dict(asked.arguments), str(actor)) == (
        "look", {"user": "ann"}, "machine",
    )  # fmt: skip
    assert (told.ok, told.unknown) == (False, True)
    assert told.value == {"error": "the tool could not be reached: reset"}
    stands.tools = None
    await _read_again(stands, call)
    assert len(steps) == 2
