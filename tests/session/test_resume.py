"""Resume is replay: whatever was interrupted, wherever, stands where it stood."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from active_frame import active_frame
from hypothesis import given, settings
from hypothesis import strategies as st

from counter_desk import (
    COUNTER,
    ERRANDS,
    HANDBOOK,
    CountingTools,
    HandClock,
    counter_programs,
    go_on,
    next_move,
    walk,
    wander,
)
from sopilot.agent.dialog import RecordedDialog, refreshed
from sopilot.machine.automation import Automation
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import (
    InternalBug,
    LeaseHeld,
    LeaseLost,
    ProgramChanged,
    RunEnded,
    StoreUnavailable,
    TraceBroken,
)
from sopilot.protocols import Message
from sopilot.records.journal import write
from sopilot.records.loading import load
from sopilot.records.people import load_people
from sopilot.records.store import Batch, Lease, SessionRecord, Settings, Store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import verify_chain
from sopilot.trace.events import Start
from sopilot.views.answers import Answers
from sopilot.views.frame import frame_bound


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


async def fresh(store: Store, **options: object) -> Session:
    return await open_session(
        store,
        COUNTER,
        tools=CountingTools(),
        clock=HandClock(),
        settings=Settings(**options),  # type: ignore[arg-type]  # spread over typed fields
    )


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=25, deadline=None)
def test_resumed_at_any_step_equals_uninterrupted(seed: int, automated: bool) -> None:
    automation = Automation(take_branches=True, group_returns=True) if automated else Automation()
    bound = max(frame_bound(program) for program in COUNTER.programs.values())

    async def case() -> None:
        store = MemoryStore()
        session = await fresh(store, automation=automation)
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

    asyncio.run(case())


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
    session = await fresh(ours, by_reference=frozenset({"password"}))
    source = random.Random(seed)
    slots = set()
    for _ in range(60):
        await wander(session, source, 1)
        found = await load(other, session.id)
        machine = found.programs.machine(found.settings.limits)
        slot = active_frame(session.machine, session.configuration)
        assert active_frame(machine, found.configuration) == slot
        seen = Session(other, found, Lease(session.id, "", 0, 0.0), tools=None, clock=session.clock)
        assert await told(seen) == await told(session)
        slots.add(slot)
    assert len(slots) > 10
    await ours.close()
    await other.close()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("skip", range(15))
async def test_a_failed_append_leaves_the_session_whole(moment: str, skip: int) -> None:
    store = UnsteadyStore()
    session = await fresh(store)
    tools = session.tools
    assert isinstance(tools, CountingTools)
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
    session = await fresh(store)
    tools = session.tools
    assert isinstance(tools, CountingTools)
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
    session = await fresh(store)
    before = await store.record(session.id)
    await session.user_said("hello")
    store.before = before
    loaded = await load(store, session.id)
    assert [one.event.kind for one in loaded.events] == ["note", "user_said"]
    store.before = before
    await session.reload()
    assert list(session.events) == loaded.events
    await write(store, "people", "demanded", {"what": "x", "on": True}, clock=session.clock)
    older = await store.record("journal.people")
    await write(store, "people", "demanded", {"what": "y", "on": True}, clock=session.clock)
    store.before = older
    assert (await load_people(store)).demands == {"x", "y"}


async def test_an_event_that_is_too_many_breaks_it_still() -> None:
    store = LaggingStore()
    session = await fresh(store)
    await session.user_said("hello")
    one = store._sessions[session.id]
    one.events.append(one.events[-1])
    with pytest.raises(TraceBroken):
        await load(store, session.id)


async def test_one_owner_at_a_time() -> None:
    store = MemoryStore()
    session = await fresh(store)
    with pytest.raises(LeaseHeld):
        await resume_session(store, session.id, clock=session.clock)
    other = await resume_session(store, session.id, clock=session.clock, take_over=True)
    with pytest.raises(LeaseLost):
        await session.user_said("hello")
    assert (session.is_current, other.is_current) == (False, True)
    await other.user_said("hello")
    await other.release()
    assert not other.is_current
    with pytest.raises(RunEnded, match="released"):
        await other.user_said("again")
    third = await resume_session(store, session.id, clock=session.clock)
    assert [one.event.kind for one in third.events][-1] == "user_said"


async def test_a_changed_trace_is_not_resumed() -> None:
    store = MemoryStore()
    session = await fresh(store)
    await walk(session, "rename")
    await session.release()
    kept = store._sessions[session.id]
    kept.events[3], kept.events[4] = kept.events[4], kept.events[3]
    with pytest.raises(TraceBroken, match="event 3"):
        await resume_session(store, session.id, clock=session.clock)
    assert (await store.record(session.id)).owner == ""


async def test_a_changed_program_is_not_resumed_silently() -> None:
    changed = ProgramSet(counter_programs(HANDBOOK.replace("limit: 500", "limit: 400")))
    store = MemoryStore()
    session = await fresh(store)
    await session.operate(Start("rename", ERRANDS["rename"]))
    await session.operate(Start("wire", ERRANDS["wire"]))
    await session.release()
    with pytest.raises(ProgramChanged) as refused:
        await resume_session(store, session.id, clock=session.clock, programs=changed)
    assert "transfer" in refused.value.changes
    assert "program of `transfer` is not the one" in str(refused.value)
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


async def test_reserved_notes_are_the_sessions_own() -> None:
    session = await fresh(MemoryStore())
    with pytest.raises(InternalBug):
        await session.note("outcome_unknown", {"call_id": "c"})
    await session.note("budget", {"left": 0})


async def test_an_interrupt_while_the_lease_is_let_go_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await fresh(MemoryStore(), lease_seconds=0.03)
    leaving = asyncio.Event()

    async def renew() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            leaving.set()
            await asyncio.sleep(0.2)  # a renewal takes a moment to end
            raise

    monkeypatch.setattr(session, "renew", renew)

    async def work() -> None:
        async with session.keep_alive():
            await asyncio.sleep(0.05)

    task = asyncio.create_task(work())
    await leaving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
