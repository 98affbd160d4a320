"""Resume is replay: whatever was interrupted, wherever, stands where it stood."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from active_frame import active_frame
from hypothesis import given, settings
from hypothesis import strategies as st

from counter_desk import COUNTER, ERRANDS, HANDBOOK, CountingTools, go_on, next_move, walk, wander
from counter_sessions import attempt, clock_of, opened, programs_of, tools_of
from sopilot.agent.dialog import RecordedDialog, refreshed
from sopilot.agent.toolbox import END_SESSION
from sopilot.machine.automation import Automation
from sopilot.messages.errors import (
    InternalBug,
    ProgramChanged,
    StoreCorrupt,
    StoreUnavailable,
    TraceBroken,
    UserMistake,
)
from sopilot.protocols import Message
from sopilot.records.journal import write
from sopilot.records.loading import load
from sopilot.records.people import Principal, load_people
from sopilot.records.store import Batch, Lease, NewSession, SessionRecord, Settings
from sopilot.session.opening import attach_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import verify_chain
from sopilot.trace.events import Call, Fail, Note, Start
from sopilot.values.json import JSON
from sopilot.views.frame import frame_bound
from sopilot.views.step_answers import Answers


class UnsteadyStore(MemoryStore):
    """Fails when told to, before the commit or, worse, after it."""

    def __init__(self) -> None:
        super().__init__()
        self.fail = ""

    async def append(
        self, lease: Lease, batch: Batch, *, now: float, lease_seconds: float
    ) -> Lease:
        fail, self.fail = self.fail, ""
        if fail == "before":
            raise StoreUnavailable("no space is left")
        renewed = await super().append(lease, batch, now=now, lease_seconds=lease_seconds)
        if fail == "after":
            raise StoreUnavailable("the connection broke")
        return renewed


class LaggingStore(MemoryStore):
    """What it says of a session can be of a moment before its events."""

    def __init__(self) -> None:
        super().__init__()
        self.before: SessionRecord | None = None

    async def record(self, session_id: str) -> SessionRecord:
        before, self.before = self.before, None
        return before or await super().record(session_id)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=25, deadline=None)
async def test_resumed_at_any_step_equals_uninterrupted(seed: int, automated: bool) -> None:
    automation = Automation(take_branches=True, group_returns=True) if automated else Automation()
    bound = max(frame_bound(program) for program in COUNTER.programs.values())

    store = MemoryStore()
    session = await opened(store, settings=Settings(automation=automation))
    source = random.Random(seed)
    for _ in range(25):
        await wander(session, source, 1)
        again = await resume_session(
            store,
            session.id,
            tools=session.tools,
            clock=session.clock,
            programs=COUNTER,
            take_over=True,
        )
        assert again.configuration == session.configuration
        assert again.ledger == session.ledger
        slot = active_frame(session.machine, session.configuration)
        assert active_frame(again.machine, again.configuration) == slot
        assert len(slot) <= bound
        session = again


async def told(session: Session) -> tuple[list[Message], list[Message]]:
    recorded = RecordedDialog()
    for event in await session.whole_events():
        recorded.take(event)
    return recorded.messages, refreshed(recorded.messages, Answers.WHOLE)


@pytest.mark.parametrize("seed", range(3))
async def test_a_prompt_rebuilt_from_a_file_equals_the_uninterrupted_one(
    seed: int, tmp_path: Path
) -> None:
    """At every step, from another handle on the store: the slot, and the messages that stand
    before it after an interruption or a refreshed context. Nobody takes the session over."""
    path = tmp_path / "s.db"

    ours, other = SQLiteStore(path, synchronous="NORMAL"), SQLiteStore(path)
    session = await opened(ours, settings=Settings(by_reference=frozenset({"password"})))
    source = random.Random(seed)
    slots = set()
    for _ in range(60):
        await wander(session, source, 1)
        loaded = await load(other, session.id)
        machine = loaded.programs.machine(loaded.settings.limits)
        slot = active_frame(session.machine, session.configuration)
        assert active_frame(machine, loaded.configuration) == slot
        seen = Session(
            other, loaded, Lease(session.id, "", 0, 0.0), tools=None, clock=session.clock
        )
        assert await told(seen) == await told(session)
        slots.add(slot)
    assert len(slots) > 10
    await ours.close()
    await other.close()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("skip", range(15))
async def test_a_failed_append_leaves_the_session_whole(moment: str, skip: int) -> None:
    store = UnsteadyStore()
    session = await opened(store)
    tools = tools_of(session)
    await session.operate(Start("transfer", ERRANDS["transfer"]))
    failed = False
    for number in range(60):
        move = next_move(session.machine, session.configuration)
        if move is None:
            break
        store.fail = moment if number == skip else ""
        before = session.configuration
        try:
            if isinstance(move, tuple):
                await session.call_tool(*move, call_id="c")
            else:
                await session.operate(move)
        except StoreUnavailable:
            failed = True
            assert session.configuration == before
            assert not session.is_current
        else:
            assert session.is_current
    assert failed
    assert session.configuration.processes["p1"].status == "completed"
    assert tools.made("transfer") == 1
    stored = await store.events(session.id)
    assert verify_chain(stored, session_id=session.id, head=session.head) is None
    assert stored == list(session.events)


async def test_a_result_that_could_not_be_recorded_is_recorded_next() -> None:
    store = UnsteadyStore()
    session = await opened(store)
    tools = tools_of(session)
    await walk(session, "transfer", stop_at_action="transfer")

    original = tools.call

    async def call_then_break(name, arguments, *, key):  # type: ignore[no-untyped-def]
        store.fail = "before"
        return await original(name, arguments, key=key)

    tools.call = call_then_break  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await session.call_tool("transfer", ERRANDS["transfer"], "t")
    tools.call = original  # type: ignore[method-assign]
    await session.user_said("and?")
    await go_on(session)
    assert session.configuration.processes["p1"].status == "completed"
    assert tools.made("transfer") == 1


async def test_a_session_that_goes_on_while_it_is_read_is_not_broken() -> None:
    """Also where a write arrives whose connection was lost before it was heard of."""

    store = LaggingStore()
    session = await opened(store)
    before = await store.record(session.id)
    await session.user_said("hello")
    store.before = before
    loaded = await load(store, session.id)
    assert [one.event.kind for one in loaded.events] == ["note", "user_said"]
    await write(store, "people", "demanded", {"what": "x", "on": True}, clock=session.clock)
    older = await store.record("journal.people")
    await write(store, "people", "demanded", {"what": "y", "on": True}, clock=session.clock)
    store.before = older
    assert (await load_people(store)).demands == {"x", "y"}


async def test_an_event_that_is_too_many_breaks_it_still() -> None:
    store = LaggingStore()
    session = await opened(store)
    await session.user_said("hello")
    one = store._sessions[session.id]
    one.events.append(one.events[-1])
    with pytest.raises(TraceBroken):
        await load(store, session.id)


async def test_a_changed_trace_is_not_resumed() -> None:
    store = MemoryStore()
    session = await opened(store)
    await walk(session, "rename")
    await session.release()
    stored = store._sessions[session.id]
    stored.events[3], stored.events[4] = stored.events[4], stored.events[3]
    with pytest.raises(TraceBroken, match="event 3"):
        await resume_session(store, session.id, clock=session.clock)
    assert (await store.record(session.id)).owner == ""


async def test_a_changed_program_is_not_resumed_silently() -> None:
    changed = programs_of(HANDBOOK.replace("limit: 500", "limit: 400"))

    store = MemoryStore()
    session = await opened(store)
    await session.operate(Start("rename", ERRANDS["rename"]))
    await session.operate(Start("wire", ERRANDS["wire"]))
    await session.release()
    with pytest.raises(ProgramChanged) as refused:
        await resume_session(store, session.id, clock=session.clock, programs=changed)
    assert "transfer" in refused.value.changes
    assert "program of `transfer` isn't the program" in str(refused.value)
    stored = await resume_session(store, session.id, clock=session.clock)
    assert stored.programs.hashes == COUNTER.hashes
    await stored.release()
    accepted = await resume_session(
        store,
        session.id,
        tools=CountingTools(),
        clock=session.clock,
        programs=changed,
        accept_changed=True,
    )
    assert accepted.configuration.active is None
    names = [one.event.payload.get("name") for one in accepted.events]
    assert "program_changed" in names
    await walk(accepted, "transfer")
    await accepted.release()
    again = await resume_session(store, session.id, clock=session.clock, programs=changed)
    assert again.configuration == accepted.configuration
    assert again.programs.hashes == changed.hashes
    await again.release()
    unaided = await attach_session(store, session.id, clock=session.clock)
    assert unaided.programs.hashes == changed.hashes, "the store has the other programs, too"
    assert unaided.configuration == accepted.configuration


async def test_automatic_steps_that_were_left_out_are_taken_when_the_run_goes_on() -> None:
    """Here by a process whose evaluator decided nothing."""
    store, settings = MemoryStore(), Settings(automation=Automation(machine_verdicts=True))
    session = await opened(store, settings=settings, judge=lambda *_: None)
    await session.operate(Start("wire", ERRANDS["wire"]))
    await session.operate(Call())
    asked = len(session.events)
    await session.release()
    later = await resume_session(store, session.id, clock=session.clock)
    (returned,) = later.own_events[asked:]
    assert (returned.kind, returned.actor) == ("return", "machine")
    assert returned.payload["holds"] is True


async def test_reserved_notes_are_the_sessions_own() -> None:
    session = await opened()
    with pytest.raises(InternalBug):
        await session.note("outcome_unknown", {"call_id": "c"})
    await session.note("budget", {"left": 0})


async def test_other_programs_must_be_released_as_well(store: MemoryStore) -> None:
    session = await opened(store, handbook="desk")
    clock = clock_of(session)
    await write(store, "people", "demanded", {"what": "sign-off", "on": True}, clock=clock)
    clock.advance(60)
    other = programs_of(HANDBOOK.replace("limit: 500", "limit: 400"))
    with pytest.raises(UserMistake, match="desk"):
        await resume_session(store, session.id, clock=clock, programs=other, accept_changed=True)
    same = await resume_session(store, session.id, clock=clock, programs=COUNTER)
    assert same.head.seq == 0


async def test_a_session_that_was_created_and_never_begun_begins_when_it_is_resumed(
    store: MemoryStore,
) -> None:
    session = await opened(store)
    new = NewSession("t", (await store.record(session.id)).metadata, {})
    await store.release(await store.create(new, owner="x", now=1000.0, lease_seconds=1))
    seen: list[int] = []

    async def before(session: Session) -> None:
        seen.append(len(session.events))

    back = await resume_session(store, "t", tools=session.tools, clock=session.clock, before=before)
    assert (seen, back.events[0].event.payload["name"]) == ([1], "opened")
    await back.operate(Start("rename", ERRANDS["rename"]))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model", "b", "the store and the trace of session s differ in `model`"),
        ("handbook", "b", "the store and the trace of session s differ in `handbook`"),
        ("requester", "b", "the store and the trace of session s differ in `requester`"),
        ("goals", [], "the store and the trace of session s differ in `goals`"),
        ("view", "b", "the store and the trace of session s differ in `view`"),
        ("view", None, ""),
        ("programs", {}, "the store and the trace of session s differ in `programs`"),
        ("salt", "xyz", "the salt of session s is damaged"),
        ("programs", 5, "session s does not name its programs"),
        ("extra", {"a": 1}, ""),
    ],
)
async def test_the_store_says_of_a_session_what_its_trace_says(
    name: str, value: JSON, says: str, store: MemoryStore
) -> None:
    await opened(store, model="a", session_id="s")
    stored = store._sessions["s"]
    stored.metadata = {**stored.metadata, name: value}
    with pytest.raises(StoreCorrupt, match=says) if says else nullcontext():
        await load(store, "s")


@pytest.mark.parametrize("requester", [None, "una", Principal("una", "token")])
async def test_the_requester_is_on_record_where_it_is_known(
    requester: Principal | str | None, store: MemoryStore
) -> None:
    session = await opened(store, requester=requester, extra={"task": 1})
    metadata = (await store.record(session.id)).metadata
    about = session.events[0].event.payload["details"]
    for known in (metadata, about):
        assert known.get("requester") == (None if requester is None else "una")
        assert ("requester" in known) is (requester is not None)
    assert metadata["extra"] == {"task": 1}
    assert (len(session.id), len(metadata["salt"])) == (32, 32)
    assert metadata["goals"] == list(COUNTER.programs)


# --- how a session stands -------------------------------------------------------------


async def nothing(session: Session) -> None:
    pass


async def renamed(session: Session) -> None:
    await walk(session, "rename")


async def under_way(session: Session) -> None:
    await walk(session, "rename", stop_at_action="rename")


async def refused(session: Session) -> None:
    await under_way(session)
    await session.operate(Fail("no"))


async def given_up(session: Session) -> None:
    await session.operate(Start("wire", ERRANDS["wire"]))
    async with session.writing():
        await session.step(Fail("no"), actor="user")


async def waits(session: Session) -> None:
    await walk(session, "wire", stop_at_action="wire")
    await attempt(session, "wire", "w")


async def waited_and_refused(session: Session) -> None:
    await waits(session)
    await session.operate(Fail("no"))


async def approved(session: Session) -> None:
    who = (("ann", "supervisor"), ("ben", "auditor"))[session.held_calls[0].approvals]
    await session.decide("approve", "w", by=who[0], role=who[1])


async def rejected(session: Session) -> None:
    await session.decide("reject", "w", by="ann", role="supervisor")


async def lost(session: Session) -> None:
    tools_of(session).failing.add("transfer")
    await walk(session, "transfer", stop_at_action="transfer")
    await attempt(session, "transfer", "t")


async def without_a_machine(session: Session) -> None:
    await attempt(session, "rename", "r")


async def ended(session: Session) -> None:
    await session.operate(Note(END_SESSION, {}))


async def noted(session: Session) -> None:
    await session.note("told", {})


@pytest.mark.parametrize(
    ("steps", "status", "goal", "waiting", "framed"),
    [
        ([nothing], "new", "", [], False),
        ([renamed], "completed", "rename", [], False),
        ([under_way], "running", "rename", [], True),
        ([refused], "refused", "rename", [], False),
        ([refused, given_up], "abandoned", "wire", [], False),
        ([given_up, refused], "refused", "rename", [], False),
        ([waits], "waiting", "wire", ["w"], True),
        ([waits, approved], "waiting", "wire", ["w"], True),
        ([waits, approved, approved], "running", "wire", [], True),
        ([waits, rejected], "running", "wire", [], True),
        ([waited_and_refused], "refused", "wire", ["w"], False),
        ([lost], "unknown", "transfer", [], True),
        ([without_a_machine], "running", "rename", [], False),
        ([without_a_machine, ended], "ended", "rename", [], False),
        ([ended], "ended", "", [], False),
        ([ended, noted], "ended", "", [], False),
    ],
)
async def test_the_store_summarises_how_a_session_stands(
    steps: list[Any], status: str, goal: str, waiting: list[str], framed: bool, store: MemoryStore
) -> None:
    session = await opened(store)
    for step in steps:
        await step(session)
    summary = (await store.record(session.id)).summary
    assert (summary["status"], summary["goal"]) == (status, goal)
    assert (summary["waiting"], summary["open"]) == (waiting, [])
    assert bool(summary["frame"]) is framed
