"""A durable run: machine, store, tools and clock, one event after the other.

The machine is pure, so a step is worked out first, written durably, and taken
only then: a store that fails leaves the session where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, replace
from types import TracebackType
from typing import Self

from sopilot.language.diagnostics import InternalBug, RunEnded
from sopilot.language.handbook.cel import judge as judge_verdict
from sopilot.language.program import Program
from sopilot.runtime.proof import grade_of_return
from sopilot.runtime.session import _approval_votes as approval_votes
from sopilot.runtime.session import _tool_calls as tool_calls
from sopilot.runtime.session._approvals import HeldCall
from sopilot.runtime.session._loading import Loaded, load
from sopilot.runtime.session._settings import Settings
from sopilot.runtime.session._store import Batch, Lease, Store
from sopilot.runtime.session._summary import summarise
from sopilot.runtime.session._writing import Writing
from sopilot.runtime.session.call_answer import CallAnswer
from sopilot.runtime.session.ledger import HELD_CALL, OUTCOME_UNKNOWN, CallLedger
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.protocols import Clock, ToolResult, Tools
from sopilot.runtime.session.recovery import OPENED, PROGRAM_CHANGED, whole_events
from sopilot.runtime.trace import Head, SealedEvent, redact, seal_line
from sopilot.runtime.vm import (
    JSON,
    AssistantSaid,
    Configuration,
    Event,
    Grader,
    Judge,
    Machine,
    Note,
    Operation,
    Outcome,
    Return,
    UserSaid,
)

RESERVED_NOTES = frozenset({HELD_CALL, OPENED, OUTCOME_UNKNOWN, PROGRAM_CHANGED})


class Session:
    """Made by ``open_session`` and ``resume_session``. One task at a time writes; tools of
    several calls may run side by side."""

    def __init__(
        self,
        store: Store,
        loaded: Loaded,
        lease: Lease,
        *,
        tools: Tools | None,
        clock: Clock,
        judge: Judge | None = None,
    ) -> None:
        self._store = store
        self._lease: Lease | None = lease
        self._owner = lease.owner
        self.tools = tools
        self.clock = clock
        self.judge: Judge = judge or judge_verdict
        self._lock = asyncio.Lock()
        self._stale = False
        self.unrecorded: dict[str, ToolResult] = {}
        """Results whose recording failed; the next operation records them first."""
        self.in_flight: set[str] = set()
        """Calls that this very session is making now."""
        self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        self.id = loaded.record.id
        self.metadata = loaded.record.metadata
        self.settings: Settings = loaded.settings
        self._automated = any(astuple(loaded.settings.automation))
        self._salt = loaded.salt
        self.programs: ProgramSet = loaded.programs
        self.first_programs: ProgramSet = loaded.first
        self._changes = dict(loaded.changes)
        self.machine: Machine = loaded.programs.machine(loaded.settings.limits)
        self.configuration: Configuration = loaded.configuration
        self.ledger: CallLedger = loaded.ledger
        self.head: Head = loaded.record.head
        self._events = list(loaded.events)
        self._stale = False

    @property
    def _grader(self) -> Grader | None:
        """Where nothing is guarded, the audit's own grades are enough, and a step stays cheap."""
        return self._grade if self.programs.guarded else None

    # --- what it is ---------------------------------------------------------------

    @property
    def events(self) -> Sequence[SealedEvent]:
        """As they are stored: with references where values are kept beside the trace."""
        return tuple(self._events)

    @property
    def program_changes(self) -> dict[int, Mapping[str, Program]]:
        """Event → the programs that hold from it on, for an audit of the whole trace."""
        return {index: changed.programs for index, changed in self._changes.items()}

    @property
    def held_calls(self) -> tuple[HeldCall, ...]:
        """Calls that wait for approval or have it, oldest first."""
        now = self.clock.now()
        return tuple(held for held in self.ledger.held.values() if held.is_open(now))

    @property
    def unknown_outcomes(self) -> tuple[str, ...]:
        """Ids of irreversible calls of which nobody knows how they ended."""
        return tuple(self.ledger.unknown)

    @property
    def retryable(self) -> tuple[str, ...]:
        """Ids of calls without a result that may be made again with the same key."""
        return tuple(
            call_id
            for call_id, pending in self.configuration.pending.items()
            if pending.action not in self.programs.guarded and call_id not in self.in_flight
        )

    # --- what it does -------------------------------------------------------------

    async def operate(self, operation: Operation) -> Outcome:
        # `writing` by hand: every step comes through here.
        await self.begin_writing()
        try:
            return await self.step(operation)
        finally:
            self.end_writing()

    async def user_said(self, text: str) -> Outcome:
        return await self.operate(UserSaid(text))

    async def assistant_said(self, text: str) -> Outcome:
        return await self.operate(AssistantSaid(text))

    async def note(self, name: str, details: Mapping[str, JSON] | None = None) -> Outcome:
        if name in RESERVED_NOTES:
            raise InternalBug(f"the note `{name}` is the session's own")
        return await self.operate(Note(name, details or {}))

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], call_id: str = ""
    ) -> CallAnswer:
        return await tool_calls.call_tool(self, name, arguments, call_id)

    async def run_held(self, call_id: str) -> CallAnswer:
        return await tool_calls.run_held(self, call_id)

    async def retry(self, call_id: str) -> CallAnswer:
        return await tool_calls.retry(self, call_id)

    async def settle_outcome(
        self, call_id: str, *, ok: bool, value: JSON = None, by: str
    ) -> Outcome:
        return await tool_calls.settle_outcome(self, call_id, ok=ok, value=value, by=by)

    async def decide(
        self,
        decision: str,
        call_id: str,
        *,
        by: str = "",
        role: str = "",
        arguments: Mapping[str, JSON] | None = None,
        reason: str = "",
    ) -> HeldCall:
        return await approval_votes.decide(
            self, decision, call_id, by=by, role=role, arguments=arguments, reason=reason
        )

    async def wait_for_decision(
        self,
        call_id: str,
        *,
        poll_seconds: float = 1.0,
        timeout_seconds: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> HeldCall:
        return await approval_votes.wait_for_decision(
            self, call_id, poll_seconds=poll_seconds, timeout_seconds=timeout_seconds, sleep=sleep
        )

    # --- the lease ----------------------------------------------------------------

    async def renew(self) -> None:
        async with self._lock:
            self._lease = await self._store.renew(
                self._held_lease(),
                now=self.clock.now(),
                lease_seconds=self.settings.lease_seconds,
            )

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Renews the lease in the background while something slow happens."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(self.settings.lease_seconds / 3)
                await self.renew()

        task = asyncio.create_task(beat())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})  # unlike `await task`: an interrupt of ours is not lost
            problem = None if task.cancelled() else task.exception()
            # A lost lease shows at the next write, where it matters.
            if problem is not None and not isinstance(problem, RunEnded):
                raise problem

    async def release(self) -> None:
        """Gives the session up. Anybody may take it; this object writes nothing more."""
        async with self._lock:
            lease, self._lease = self._lease, None
            if lease is not None:
                await self._store.release(lease)

    async def reacquire(self) -> None:
        """Takes the session back after ``release``, with whatever others wrote meanwhile."""
        async with self._lock:
            self._lease = await self._store.acquire(
                self.id,
                owner=self._owner,
                now=self.clock.now(),
                lease_seconds=self.settings.lease_seconds,
            )
            self._take(await load(self._store, self.id, known=self.programs))

    async def reload(self) -> None:
        """What the store holds, verified and replayed."""
        async with self._lock:
            self._take(await load(self._store, self.id, known=self.programs))

    async def whole_events(self) -> list[Event]:
        """The events with every value in its place that the store still has."""
        return whole_events(self._events, await self._store.payloads(self.id))

    async def stored_head(self) -> Head:
        return (await self._store.record(self.id)).head

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.release()
            return
        # The lease expires by itself; the first problem is the one to report.
        with suppress(RunEnded):
            await self.release()

    def _held_lease(self) -> Lease:
        if self._lease is not None:
            return self._lease
        raise RunEnded(f"session {self.id} was released; resume it to go on")

    # --- writing, for this room ---------------------------------------------------

    def writing(self) -> Writing:
        """One writer at a time, on top of what the store really holds."""
        return Writing(self)

    async def begin_writing(self) -> None:
        await self._lock.acquire()
        ready = False
        try:
            self._held_lease()
            if self._stale:
                self._take(await load(self._store, self.id, known=self.programs))
            if self.unrecorded:
                await tool_calls.record_late(self)
            ready = True
        finally:
            if not ready:
                self._lock.release()

    def end_writing(self) -> None:
        self._lock.release()

    async def step(self, operation: Operation, *, actor: str | None = None) -> Outcome:
        """Inside ``writing``: one machine step and what it settles, durable when it returns."""
        at = self.clock.now()
        outcome = self.machine.step(
            self.configuration, operation, at=at, actor=actor, grade=self._grader
        )
        if self._automated:
            settled = self.machine.settle(
                outcome.configuration,
                self.settings.automation,
                at=at,
                judge=self.judge,
                grade=self._grader,
            )
            outcome = replace(
                outcome,
                configuration=settled.configuration,
                events=(*outcome.events, *settled.events),
            )
        await self.commit(outcome.configuration, outcome.events)
        return outcome

    async def settle(self) -> None:
        """Inside ``writing``: what the machine owed when the run was interrupted."""
        settled = self.machine.settle(
            self.configuration,
            self.settings.automation,
            at=self.clock.now(),
            judge=self.judge,
            grade=self._grader,
        )
        if settled.events:
            await self.commit(settled.configuration, settled.events)

    def _grade(
        self, configuration: Configuration, operation: Return, evidence: Sequence[int]
    ) -> str | None:
        here = self.machine.position(configuration)
        if here is None or not here.program.strict:
            return None
        return grade_of_return(self.machine.programs, here, operation, evidence, self.judge)

    async def change_programs(self, programs: ProgramSet, note: Event, at: Configuration) -> None:
        """Inside ``writing``: go on with other programs from this note on."""
        await self.commit(at, (note,), programs=programs.texts)
        self._changes[note.seq] = programs
        self.programs = programs
        self.machine = programs.machine(self.settings.limits)

    async def commit(
        self,
        configuration: Configuration,
        events: Sequence[Event],
        *,
        programs: Mapping[str, str] | None = None,
    ) -> None:
        sealed: list[SealedEvent] = []
        lines: list[str] = []
        payloads: dict[str, JSON] = {}
        previous = self.head.hash
        for event in events:
            one, line = self._seal(event, previous, payloads)
            previous = one.hash
            sealed.append(one)
            lines.append(line)
        ledger = self.ledger
        summary = summarise(configuration, ledger.forecast(events))
        batch = Batch(self.head, sealed, payloads, summary, programs or {}, lines)
        lease = self._held_lease()
        # Cancelled or broken half-way, only the store knows what it holds.
        self._stale = True
        self._lease = await self._store.append(
            lease, batch, now=self.clock.now(), lease_seconds=self.settings.lease_seconds
        )
        self._stale = False
        self.configuration = configuration
        self.head = batch.head
        self._events += sealed
        for event in events:
            ledger.fold(event)

    def _seal(
        self, event: Event, previous: str, payloads: dict[str, JSON]
    ) -> tuple[SealedEvent, str]:
        """The event as it is kept, and its line; what it refers to goes into ``payloads``."""
        names, limit = self.settings.by_reference, self.settings.inline_limit
        if not names:
            one, line = seal_line(event, previous)
            # A character takes four bytes at most: a short line has no large field.
            if limit is None or len(line) <= limit // 4:
                return one, line
        event, kept = redact(event, names=names, limit=limit, salt=self._salt)
        payloads.update(kept)
        return seal_line(event, previous)
