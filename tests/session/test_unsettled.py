"""Calls that a killed process left open are found without anybody coming back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counter_desk import COUNTER, CountingTools, HandClock, go_on
from counter_sessions import attempt, code_of, opened, programs_of, ready_for, run, waiting_wire
from sopilot.audit.audit import audit_trace
from sopilot.machine.call_ledger import HeldState
from sopilot.messages.errors import LeaseLost, RunEnded, StoreUnavailable, UserMistake
from sopilot.protocols import Clock, SystemClock, ToolResult
from sopilot.records.loading import register
from sopilot.records.people import Principal, change_people
from sopilot.records.selection import Wanted
from sopilot.records.store import Lease, SessionRecord, Settings, Store
from sopilot.session.opening import resume_session
from sopilot.session.orphans import keep_sweeping, resolve_orphan, sweep, waiting_in, waiting_lines
from sopilot.session.queued_decisions import decide_or_queue
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.events import ANSWERED_LATE as LATE
from sopilot.trace.events import Start
from sopilot.values.json import JSON


class Hanging(CountingTools):
    """Its transfer does its work and says nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = await super().call(name, arguments, key=key)
        if name == "transfer":
            self.begun.set()
            await self.go_on.wait()
        return result


async def at_work(
    store: Store, tools: Hanging, clock: Clock, **options: Any
) -> tuple[Session, asyncio.Task[object]]:
    session = await ready_for("transfer", store, tools=tools, clock=clock, **options)
    work = asyncio.create_task(attempt(session, "transfer", "t"))
    await tools.begun.wait()
    return session, work


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    yield store
    await store.close()


async def test_a_sweep_finds_what_a_killed_owner_left_open(store: Store) -> None:
    clock, tools = HandClock(), Hanging()
    session, work = await at_work(store, tools, clock)
    assert await sweep(store, clock=clock) == []
    assert await store.unresolved(now=clock.now()) == []
    alive = await waiting_in(store, session.id, clock=clock)
    assert (alive.running, alive.unknown) == (True, ())
    clock.advance(session.settings.lease_seconds + 1.9)  # killed: nobody renews
    assert await sweep(store, clock=clock) == [], "a busy owner renews late"
    alive = await waiting_in(store, session.id, clock=clock)
    assert (alive.running, [one.call_id for one in alive.unknown]) == (False, ["t"])
    clock.advance(0.2)
    (orphan,) = await store.unresolved(now=clock.now())
    assert orphan.id == session.id
    (found,) = await sweep(store, clock=clock)
    assert found.as_json() == {"session": session.id, "call_id": "t", "action": "transfer"}
    assert await sweep(store, clock=clock) == []
    record = await store.record(session.id)
    assert record.summary["status"] == "unknown"
    assert record.owner == ""
    waiting = await waiting_in(store, session.id, clock=clock)
    assert [one.call_id for one in waiting.unknown] == ["t"]
    work.cancel()


class Refusing(MemoryStore):
    """May be read by this role, and not written."""

    refuses = False

    async def acquire(self, *args: Any, **options: Any) -> Lease:
        if self.refuses:
            raise StoreUnavailable("PostgreSQL refused: permission denied for table sessions")
        return await super().acquire(*args, **options)

    async def record(self, session_id: str) -> SessionRecord:
        found = await super().record(session_id)
        return replace(found, metadata={"settings": []}) if session_id == "odd" else found


async def test_a_sweep_that_may_not_write_does_not_say_that_there_is_nothing() -> None:
    store, clock = Refusing(), HandClock()
    _, work = await at_work(store, Hanging(), clock)
    clock.advance(60)
    store.refuses = True
    with pytest.raises(StoreUnavailable, match="permission denied"):
        await sweep(store, clock=clock)
    store.refuses = False
    assert len(await sweep(store, clock=clock)) == 1
    work.cancel()


async def test_a_session_that_is_damaged_in_any_way_hides_no_other() -> None:
    store, clock = Refusing(), HandClock()
    odd, tools = Hanging(), Hanging()
    _, left = await at_work(store, odd, clock, session_id="odd")
    other, work = await at_work(store, tools, clock)
    clock.advance(60)
    assert [one.session_id for one in await sweep(store, clock=clock)] == [other.id]
    work.cancel()
    left.cancel()


async def test_an_owner_that_was_only_slow_records_what_the_tool_said(store: Store) -> None:
    clock, tools = HandClock(), Hanging()
    session, work = await at_work(store, tools, clock)
    clock.advance(session.settings.lease_seconds + 3)
    assert len(await sweep(store, clock=clock)) == 1
    tools.go_on.set()
    answer = await work
    assert "ok" in str(answer)
    assert session.unknown_outcomes == ()
    assert (await store.record(session.id)).summary["status"] != "unknown"
    assert await store.unresolved(now=clock.now()) == []


@pytest.mark.parametrize("happened", [True, False])
async def test_a_tool_that_contradicts_whoever_settled_its_call_is_heard(
    store: Store, happened: bool
) -> None:
    clock, tools = HandClock(), Hanging()
    session, work = await at_work(store, tools, clock)
    clock.advance(60)
    await sweep(store, clock=clock)
    person = await resume_session(store, session.id, clock=clock)
    await person.resolve_outcome("t", ok=happened, by="olga")
    await person.release()
    tools.go_on.set()  # it did happen
    with pytest.raises(LeaseLost):
        await work
    events = [one.event for one in await store.events(session.id)]
    late = [one.payload["details"] for one in events if one.payload.get("name") == LATE]
    found = audit_trace(COUNTER.programs, events).findings
    says = [one.explanation for one in found if one.code == "unknown-outcome"]
    assert late == ([] if happened else [{"call_id": "t", "ok": True}])
    assert [one for one in says if "then said that it took effect" in one] == (
        []
        if happened
        else ["`t` was resolved by a person, and its tool then said that it took effect"]
    )


async def test_a_late_answer_waits_for_nobody_who_has_the_session(store: Store) -> None:
    """Its owner was taken for dead; the next one resolves the call."""
    clock, tools = HandClock(), Hanging()
    session, work = await at_work(store, tools, clock)
    clock.advance(60)
    async with await resume_session(store, session.id, clock=clock) as other:
        assert await resolve_orphan(store, session.id, clock=clock) == [], "it has an owner"
        tools.go_on.set()
        with pytest.raises(LeaseLost, match="`transfer` was sent, and its outcome is unknown"):
            await work
        assert other.unknown_outcomes == ("t",)
        await other.resolve_outcome("t", ok=True, by="olga")
        assert other.unknown_outcomes == ()


class BreakingOff(Hanging):
    """Its transfer breaks off once it is told to go on."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = await super().call(name, arguments, key=key)
        if name == "transfer":
            raise ConnectionError("reset")
        return result


async def test_a_tool_that_breaks_off_after_the_lease_was_lost_takes_nothing_back(
    store: Store,
) -> None:
    """The sweep has noted the outcome as unknown, and a tool that broke off adds nothing."""
    clock, tools = HandClock(), BreakingOff()
    session, work = await at_work(store, tools, clock)
    clock.advance(60)
    assert len(await sweep(store, clock=clock)) == 1
    swept = await store.record(session.id)
    tools.go_on.set()
    with pytest.raises(LeaseLost, match="`transfer` was sent, and its outcome is unknown"):
        await work
    left = await store.record(session.id)
    assert (left.head, left.owner, left.summary["status"]) == (swept.head, "", "unknown")


async def test_a_settled_call_is_history_in_the_audit() -> None:
    store, clock, tools = MemoryStore(), HandClock(), Hanging()
    session, work = await at_work(store, tools, clock)
    clock.advance(60)
    await resolve_orphan(store, session.id, clock=clock)
    work.cancel()
    await session.refresh()

    def severities() -> list[str]:
        events = [sealed.event for sealed in session.events]
        report = audit_trace(COUNTER.programs, events)
        return [str(one.severity) for one in report.findings if one.code == "unknown-outcome"]

    assert severities() == ["warning"]
    await session.resolve_outcome("t", ok=True, by="olga")
    assert severities() == ["note"]


async def test_decisions_are_left_for_a_session_that_somebody_runs(store: Store) -> None:
    settings = Settings(lease_seconds=1.0)
    session = await waiting_wire(store, clock=SystemClock(), settings=settings)
    async with session.keep_alive():
        assert (await waiting_in(store, session.id)).held[0].call_id == "w"
        for by, role in (("Ada", "supervisor"), ("Grace", "auditor")):
            _, _, left = await decide_or_queue(store, session.id, "approve", "w", by=by, role=role)
            assert left
        for _ in range(1000):
            await asyncio.sleep(0.02)
            if session.ledger.held["w"].state is HeldState.APPROVED:
                break
        assert [one.by for one in session.ledger.held["w"].rulings] == ["Ada", "Grace"]
        assert await store.pending_decisions(session.id) == []
        done = await session.run_held("w")
        assert done.result is not None
    await session.release()


@pytest.fixture
async def left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A session in the default store whose owner was killed at work, and the key of its call."""
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    store, tools = SQLiteStore(tmp_path / "sessions.db"), Hanging()
    clock = HandClock(SystemClock().now() - 100.0)
    more = {"handbook": "counter", "extra": {"gateway": "x"}}
    session, work = await at_work(store, tools, clock, **more)
    work.cancel()
    await asyncio.wait({work})
    await store.close()
    return session.id, tools.calls[-1][2]


def test_the_commands_find_and_settle_it(left_open: tuple[str, str]) -> None:
    session_id, key = left_open
    listed = run("sessions", "list", "--orphaned", "--json")
    assert (listed.exit_code, json.loads(listed.output)["sessions"][0]["id"]) == (1, session_id)
    waits = run("approvals", "list", session_id).output
    assert "outcome unknown  transfer {" in waits
    assert f"key {key}\n" in waits  # by which the tool can say whether it happened
    resumed = run("resume", session_id)
    assert (resumed.exit_code, "outcome unknown" in resumed.output) == (1, True)
    settled = run("approvals", "resolve", session_id, "t", "--as", "olga", "--happened", "--json")
    assert (settled.exit_code, json.loads(settled.output)["unknown"]) == (0, [])
    assert run("sessions", "list", "--orphaned").output == "no sessions\n"
    assert run("sessions", "sweep").exit_code == 0
    assert run("store", "migrate").output == "schema 1\n"
    refused = run("store", "migrate", "--runtime", "runner")
    assert (refused.exit_code, "only PostgreSQL has roles" in refused.output) == (2, True)


async def test_saying_how_a_call_ended_takes_the_same_people_as_an_approval(
    clock: HandClock,
) -> None:
    """If it did not happen, it may be made again."""
    store = MemoryStore()
    session, work = await at_work(store, Hanging(), clock)
    session.metadata["requester"] = "Rita"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)

    async def refused(by: str, who: Principal | None = None) -> str:
        with pytest.raises(UserMistake) as problem:
            await session.resolve_outcome("t", ok=False, by=by, who=who)
        return code_of(problem)

    codes = [await refused(by) for by in (" ", "Rita", "BOB", "assistant")]
    assert codes == ["nobody", "party", "party", "party"]
    required = {"what": "identity", "on": True}
    await change_people(store, "demanded", required, who=None, clock=clock)
    assert await refused("olga") == "unauthenticated"
    olga = Principal("Olga", "token", "olga-1")
    await session.resolve_outcome("t", ok=False, by="", who=olga)
    *_, row = (await register(store, Wanted(action="transfer"))).entries(None)
    assert row.decisions[-1]["principal"] == {"method": "token", "proof": "olga-1"}


async def test_sweeping_goes_on_where_a_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [RunEnded("gone"), [], ["left"], []]

    async def swept(_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, RunEnded):
            raise answer
        return answer

    monkeypatch.setattr("sopilot.session.orphans.sweep", swept)
    found: list[Any] = []
    warned: list[str] = []
    with pytest.raises(IndexError):
        await keep_sweeping(MemoryStore(), 0.0, found.append, warned.append)
    assert (found, warned) == ([[], ["left"], []], ["sopilot: gone"])
    for answer, anything in ((["left"], True), ([], False)):
        answers[:] = [answer]
        swept_once = await keep_sweeping(MemoryStore(), None, found.append, warned.append)
        assert swept_once is anything
    answers[:] = [RunEnded("gone")]
    with pytest.raises(RunEnded):
        await keep_sweeping(MemoryStore(), None, found.append, warned.append)


SECRET = """
handbook: desk
actions:
  pay:
    input: {user: string, code: {type: string, secret: true}}
    irreversible: true
    approval: boss
predicates:
  asked(user): {says: A., verify: arguments, verdict: user != ''}
procedures:
  pay: {requires: asked(user)}
"""


async def test_a_secret_shows_neither_in_what_waits_nor_in_a_decision_that_was_left(
    clock: HandClock,
) -> None:
    store = MemoryStore()
    session = await opened(store, programs=programs_of(SECRET), clock=clock)
    values: dict[str, JSON] = {"user": "ann", "code": "hunter22"}
    await session.operate(Start("pay", values))
    await go_on(session, stop_at_action="pay")
    assert (await session.call_tool("pay", values, "p")).held is not None
    await session.note("malformed_call", {"name": "pay", "arguments": '{"code": "hunter22'})
    _, _, left = await decide_or_queue(
        store, session.id, "amend", "p", by="Bo", role="boss", reason="not hunter22",
        arguments={"user": "ann", "code": "hunter23"}, clock=clock,
    )  # fmt: skip
    assert left
    waiting = await waiting_in(store, session.id, clock=clock)
    shown = f"{[*waiting_lines(waiting)]} {waiting.as_json()} {await session.shown_events()}"
    assert "ann" in shown
    assert "hunter2" not in shown
