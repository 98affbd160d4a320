"""A durable run: machine, store, tools and clock, one event after the other.

The machine is pure: a step is computed, written durably, and only then taken. A store that fails
leaves the session where it was. One task writes at a time, on top of what the store holds.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self

from sopilot.handbook.expressions import judge as judge_verdict
from sopilot.machine.automation import Automation
from sopilot.machine.call_ledger import CallLedger, HeldCall
from sopilot.machine.evidence import may_unprove
from sopilot.machine.layout import Position
from sopilot.machine.leaves import grade_of_return
from sopilot.machine.machine import Grader, Machine, Outcome
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import whole_events
from sopilot.machine.secrets import WRITTEN, Secrets, shown_events
from sopilot.machine.state import Configuration
from sopilot.machine.terms import whole_values
from sopilot.messages.errors import InternalBug, LeaseLost, RunEnded
from sopilot.program.model import Program
from sopilot.proof.agenda import Need
from sopilot.protocols import Clock, ToolResult, Tools, moment_of
from sopilot.records.actions import FOLDED, ActionEntry, ActionRow, Register
from sopilot.records.entitlements import Entitlements, load_entitlements
from sopilot.records.loading import Loaded, load, summarise
from sopilot.records.store import Batch, Lease, NewSession, Settings, Store
from sopilot.session import admission, attempts, calls
from sopilot.session import approvals as approval_votes
from sopilot.session.lock import Lock
from sopilot.session.questions import Asker
from sopilot.trace.chain import Head, SealedEvent, seal_line
from sopilot.trace.events import (
    CLOCK,
    RESERVED,
    AssistantSaid,
    DomainCall,
    DomainResult,
    Event,
    Note,
    Operation,
    Return,
    Start,
    UserSaid,
)
from sopilot.trace.redaction import hide, redact
from sopilot.values.json import JSON, Judge, made, plain, plain_mapping, without_references
from sopilot.views.step_answers import CallAnswer


def seal_events(
    events: Sequence[Event],
    head: Head,
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
    register: Register,
) -> tuple[list[SealedEvent], dict[str, JSON], list[str], Sequence[ActionRow]]:
    """The events as they are kept, folded into the register: with the values beside them, as
    lines, and as rows of the register."""
    sealed: list[SealedEvent] = []
    lines: list[str] = []
    payloads: dict[str, JSON] = {}
    actions: dict[str, ActionEntry] = {}
    previous = head.hash
    # A character takes four bytes at most: a short line has no large field.
    short = settings.inline_limit // 4 if settings.inline_limit is not None else sys.maxsize
    as_it_is = not (settings.private or settings.by_reference or secrets.names)
    for event in events:
        if as_it_is:
            item, line = seal_line(event, previous)
        if not as_it_is or len(line) > short:
            item, line = _seal_kept(event, previous, payloads, settings, salt, secrets, short)
        previous = item.hash
        sealed.append(item)
        lines.append(line)
        if event.kind in FOLDED:
            action = register.fold(event, item.event)
            if action is not None:
                actions[action.call_id] = action
    rows = [action.row() for action in actions.values()] if actions else ()
    return sealed, payloads, lines, rows


def _seal_kept(
    event: Event,
    previous: str,
    payloads: dict[str, JSON],
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
    short: int,
) -> tuple[SealedEvent, str]:
    """The event as it is kept, and its line; what it refers to goes into ``payloads``. In a line
    of at most ``short`` characters no field is large."""
    if settings.private:
        secrets.learn(event)
        event, stored = hide(event, columns=settings.columns, salt=salt)
        payloads.update(stored)
        return seal_line(event, previous)
    names, limit = settings.by_reference, settings.inline_limit
    if names and event.kind == Note.kind:
        names |= WRITTEN
    strange: frozenset[str] = frozenset()
    if secrets.names:
        strange = secrets.learn(event)
        names |= secrets.places.fields_in(event)
    event, stored = redact(event, names=names, salt=salt, secrets=secrets.values, strange=strange)
    payloads.update(stored)
    sealed, line = seal_line(event, previous)
    if len(line) > short:
        event, stored = redact(event, limit=limit, salt=salt)
        payloads.update(stored)
        sealed, line = seal_line(event, previous)
    return sealed, line


RESERVED_NOTES = RESERVED | {CLOCK}
_LOOKS_AT_CLOCK = frozenset({Start, DomainResult, Return})
"""A verdict may follow each of these."""
_NOTHING_BY_ITSELF = Automation()


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
        new: NewSession | None = None,
    ) -> None:
        self._store = store
        self._lease: Lease | None = lease
        self._owner = lease.owner
        self._released_token = 0
        """The token of the last lease that was released."""
        self.clock = clock
        self._lock = Lock()
        self._new = new
        """The session, until the first commit creates it in the store."""
        self.from_store = new is None
        self.tools = tools
        self.judge: Judge = judge or judge_verdict
        self.asker: Asker | None = None
        """How the machine asks the user; without one its questions fail."""
        self.supplied: dict[str, JSON] = {}
        """Values that the application supplied, never the model; kept in memory alone."""
        self.judgements: dict[str, Need] = {}
        """Checks that a guarded call waits for and that a model must judge, by predicate."""
        self.as_written = False
        """Whether the agent can only make a guarded call as it wrote it. If people gave the call
        other arguments, the agent is told, and the approval serves the call that it makes then."""
        self.language = "en"
        self.tool_names: dict[str, str] = {}
        """The agent's names of its tools, by action, where they differ."""
        self.unrecorded: dict[str, ToolResult] = {}
        """Results whose recording failed; the next operation records them first."""
        self.in_flight: set[str] = set()
        """Calls that this very session is making now."""
        self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        self.id = loaded.record.id
        self.metadata = loaded.record.metadata
        self.created_at = loaded.record.created_at
        self.settings: Settings = loaded.settings
        self._automated = loaded.settings.automation != _NOTHING_BY_ITSELF
        self._salt = loaded.salt
        self.programs: ProgramSet = loaded.programs
        self.first_programs: ProgramSet = loaded.first
        self._changes = dict(loaded.changes)
        self.machine: Machine = loaded.programs.machine(loaded.settings.limits)
        self.configuration: Configuration = loaded.configuration
        self.secrets = Secrets(loaded.programs, loaded.whole)
        self.ledger: CallLedger = loaded.ledger
        self._register = loaded.register
        self.head: Head = loaded.record.head
        self._events = list(loaded.events)
        self._own_events = loaded.whole
        self._stale = False
        """Whether the store may hold more than this object knows."""

    @property
    def _grader(self) -> Grader | None:
        """Without guarded actions the audit's own grades are enough, and a step stays cheap."""
        return self._grade if self.programs.guarded else None

    # --- what it is ---------------------------------------------------------------

    @property
    def events(self) -> Sequence[SealedEvent]:
        """As they are stored: with references where values are kept beside the trace."""
        return tuple(self._events)

    @property
    def own_events(self) -> Sequence[Event]:
        """As they happened, with every value in its place. Never store or show them."""
        return tuple(self._own_events)

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
        """Ids of calls without an outcome, until a person or the tools resolve them."""
        return tuple(self.ledger.unknown)

    @property
    def open_guarded(self) -> tuple[str, ...]:
        """Ids of guarded calls without a result."""
        guarded = self.programs.guarded
        pending = self.configuration.pending.items()
        return tuple(call_id for call_id, item in pending if item.action in guarded)

    @property
    def retryable(self) -> tuple[str, ...]:
        """Ids of calls that an interruption left without a result, and that may be made again
        with the same key: not while they may change what an open guarded call rests on."""
        stored = {*self.in_flight, *self.ledger.unknown, *self.open_guarded}
        programs, waits = self.machine.programs, bool(self.open_guarded)
        return tuple(
            call_id
            for call_id, pending in self.configuration.pending.items()
            if call_id not in stored and not (waits and may_unprove(programs, pending.action))
        )

    # --- what it does -------------------------------------------------------------

    async def operate(self, operation: Operation) -> Outcome:
        async with self._lock:  # as ``writing``, without its generator: every step comes here
            await self._catch_up()
            return await self.step(operation)

    async def user_said(self, text: str) -> Outcome:
        return await self.operate(UserSaid(text))

    async def assistant_said(self, text: str) -> Outcome:
        return await self.operate(AssistantSaid(text))

    async def note(self, name: str, details: Mapping[str, JSON] | None = None) -> Outcome:
        if name in RESERVED_NOTES:
            raise InternalBug(f"the note name `{name}` is reserved")
        return await self.operate(Note(name, without_references(plain_mapping(details or {}))))

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], call_id: str = ""
    ) -> CallAnswer:
        wish = self._wish(name, arguments, call_id)
        guarded = self.programs.guarded.get(name)
        if guarded is not None and self.settings.guard:
            answer = await attempts.attempt(self, guarded, wish)
            assert answer is not None
            return answer
        since = self.configuration.next_seq

        async def decide() -> admission.Decided:
            arguments = admission.as_received(self, name, wish.arguments)
            received = replace(wish, arguments=arguments)
            if guarded is None:
                return await admission.admit_unguarded(self, received)
            return await admission.admit(self, guarded, received, since)

        answer = await admission.carry_out(self, name, decide)
        assert answer is not None
        return answer

    def _wish(self, name: str, arguments: Mapping[str, JSON], call_id: str = "") -> DomainCall:
        """A call as the trace spells it: models write ids that JSON can't say."""
        sent = without_references(plain_mapping(arguments))
        return DomainCall(str(plain(call_id)), name, whole_values(self.configuration, sent))

    async def rehearse(self, name: str, arguments: Mapping[str, JSON]) -> CallAnswer | None:
        """Say why a guarded call wouldn't be made now; ``None`` if it would. Never make it."""
        guarded = self.programs.guarded.get(name) if self.settings.guard else None
        if guarded is None:
            return None
        return await attempts.attempt(self, guarded, self._wish(name, arguments), rehearsed=True)

    async def run_held(self, call_id: str) -> CallAnswer:
        """Make a held call if it has its approvals."""
        held = self.ledger.held.get(call_id)
        decide = partial(admission.admit_held, self, call_id, self.configuration.next_seq)
        answer = await admission.carry_out(self, held.action if held is not None else "", decide)
        assert answer is not None
        return answer

    async def retry(self, call_id: str) -> CallAnswer:
        """Make an interrupted call again, with its key."""
        pending = self.configuration.pending.get(call_id)
        async with self.writing(pending.action if pending is not None else "") as connection:
            pending = self.configuration.pending.get(call_id)
            if pending is None or call_id not in self.retryable:
                raise calls.unknown_call(call_id, self.retryable)
            self.in_flight.add(call_id)
        call = DomainCall(call_id, pending.action, pending.arguments)
        return await calls.perform(self, call, connection, again=True)

    judge_check = attempts.judge_check
    give_values = attempts.give_values
    resolve_outcome = calls.resolve_outcome
    decide = approval_votes.decide
    record_vote = approval_votes.record_vote

    async def entitlements(self) -> Entitlements:
        """The rules about who may decide in this session."""
        return await load_entitlements(
            self._store, self.metadata, self.configuration, self.ledger, self.programs
        )

    async def take_up(self) -> None:
        """After an interruption: take the automatic steps due, and note unknown outcomes."""
        async with self.writing():
            await self.automate()
            await calls.note_unknown_outcomes(self)
        await self.take_decisions()

    async def take_decisions(self) -> None:
        """Record the decisions that were queued while this session was at work."""
        if self.held_calls:
            await approval_votes.record_queued(self, self._store)

    async def _read_again(self) -> None:
        self._take(await load(self._store, self.id, known=(self.programs,)))

    async def whole_events(self) -> list[Event]:
        """The events with every value in its place that the store still has."""
        return whole_events(self._events, await self._store.payloads(self.id))

    async def shown_events(self) -> list[Event]:
        """The events as people may see them: without the values of secret inputs."""
        payloads = await self._store.payloads(self.id)
        return shown_events(self._events, payloads, self.secrets.places)

    # --- its lease ----------------------------------------------------------------

    async def renew(self) -> None:
        async with self._lock:
            self._lease = await self._renewed(self._held_lease())

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Renew the lease in the background while something slow happens, and record what people
        decide meanwhile."""
        beats: list[asyncio.Task[None]] = []
        # Most calls end before the first heartbeat: until then there is a timer, and no task.
        first = asyncio.get_running_loop().call_later(
            self.settings.lease_seconds / 3,
            lambda: beats.append(asyncio.create_task(self._beat())),
        )
        try:
            yield
        finally:
            first.cancel()
            for task in beats:
                task.cancel()
                await asyncio.wait({task})  # unlike `await`: an interrupt of ours isn't lost
                problem = None if task.cancelled() else task.exception()
                if problem is not None and not isinstance(problem, RunEnded):
                    raise problem

    async def _beat(self) -> None:
        while True:
            try:
                await self.renew()
                await self.take_decisions()
            except LeaseLost:
                return  # shows at the next write, where it matters
            except RunEnded:
                pass  # the store is gone for a moment, and the lease is still ours
            await asyncio.sleep(self.settings.lease_seconds / 3)

    async def release(self) -> None:
        """Give the session up: others may take it, and this object writes nothing more."""
        async with self._lock:
            lease, self._lease = self._lease, None
            if lease is not None:
                self._released_token = lease.token
                await self._store.release(lease)

    async def reacquire(self) -> bool:
        """Take the session back after ``release``. Return whether others had it meanwhile, so that
        it was read again."""
        async with self._lock:
            return await self._take_back()

    async def refresh(self) -> bool:
        """Own the session as it stands in the store, also after a release, a lost lease or a failed
        write. Return whether it was read again."""
        async with self._lock:
            if self._lease is not None:
                if self._lease.expires_at > self.clock.now() and not self._stale:
                    return False
                with suppress(LeaseLost):
                    self._lease = await self._renewed(self._lease)
                    if self._stale:
                        await self._read_again()
                        return True
                    return False
            return await self._take_back()

    @property
    def is_current(self) -> bool:
        """Whether this object has the lease, and all that the store holds as far as it knows."""
        return self._lease is not None and not self._stale

    async def _take_back(self) -> bool:
        self._lease = await self._store.acquire(
            self.id,
            owner=self._owner,
            now=self.clock.now(),
            lease_seconds=self.settings.lease_seconds,
        )
        # Every change of owner raises the token by one: nobody else had it in between.
        if self._lease.token == self._released_token + 2 and not self._stale:
            return False
        self._stale = True
        await self._read_again()
        return True

    async def _renewed(self, lease: Lease) -> Lease:
        return await self._store.renew(
            lease, now=self.clock.now(), lease_seconds=self.settings.lease_seconds
        )

    def _held_lease(self) -> Lease:
        if self._lease is not None:
            return self._lease
        raise RunEnded(f"session {self.id} was released; resume it to go on")

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

    # --- writing -------------------------------------------------------------------

    @asynccontextmanager
    async def writing(self, action: str = "") -> AsyncIterator[str]:
        """Let one task write at a time, on top of what the store really holds. With an ``action``,
        yield the connection on which that is called, after noting new connections (P8)."""
        present = await calls.connections(self, action) if action else ()
        async with self._lock:
            await self._catch_up()
            yield await calls.note_connections(self, action, present) if present else ""

    async def _catch_up(self) -> None:
        self._held_lease()
        if self._stale:
            await self._read_again()
        if self.unrecorded:
            await calls.record_late(self)

    async def step(self, operation: Operation, *, actor: str | None = None) -> Outcome:
        """Take a step and the automatic steps after it; durable when it returns.

        Call it inside ``writing``.
        """
        if self.programs.reads_clock and type(operation) in _LOOKS_AT_CLOCK:
            await self.look_at_clock()
        at = self.clock.now()
        outcome = self.machine.step(
            self.configuration, operation, at=at, actor=actor, grade=self._grader
        )
        if self._automated:
            automatic = self._automatic(outcome.configuration, at)
            outcome = replace(
                outcome,
                configuration=automatic.configuration,
                events=(*outcome.events, *automatic.events),
            )
        await self.commit(outcome.configuration, outcome.events)
        return outcome

    async def look_at_clock(self) -> None:
        """Inside ``writing``: record the time if a program reads the clock and it has changed."""
        if not self.programs.reads_clock:
            return
        own: Callable[[], object] | None = getattr(self.tools, "time", None)
        if own is not None:
            now = moment_of(own())
        else:
            now = datetime.fromtimestamp(int(self.clock.now()), UTC).isoformat()
        if now != self.configuration.clock:
            at = self.clock.now()
            outcome = self.machine.step(self.configuration, Note(CLOCK, {"now": now}), at=at)
            await self.commit(outcome.configuration, outcome.events)

    async def automate(self) -> None:
        """Take the automatic steps that an interruption left out. Call it inside ``writing``."""
        automatic = self._automatic(self.configuration, self.clock.now())
        if automatic.events:
            await self.commit(automatic.configuration, automatic.events)

    def _automatic(self, configuration: Configuration, at: float) -> Outcome:
        automation, judge, grade = self.settings.automation, self.judge, self._grader
        return self.machine.automate(configuration, automation, at=at, judge=judge, grade=grade)

    def _grade(self, here: Position, operation: Return, evidence: Sequence[int]) -> str | None:
        return grade_of_return(here, operation, evidence, self.judge)

    async def change_programs(self, programs: ProgramSet, note: Event, at: Configuration) -> None:
        """Inside ``writing``: go on with other programs from this note on."""
        await self.commit(at, (note,), programs=programs.texts)
        self._register.changing = programs.changing
        self._changes[note.seq] = programs
        self.programs = programs
        self.secrets = Secrets(programs, self._own_events)
        self.machine = programs.machine(self.settings.limits)

    async def commit(
        self,
        configuration: Configuration,
        events: Sequence[Event],
        *,
        programs: Mapping[str, str] | None = None,
    ) -> None:
        lease = self._held_lease()
        # Cancelled or broken half-way, only the store knows what it holds.
        self._stale = True
        before, settings, ledger = self.head, self.settings, self.ledger
        sealed, payloads, lines, actions = seal_events(
            events, before, settings, self._salt, self.secrets, self._register
        )
        summary = summarise(
            configuration, ledger.forecast(events), self._register, self.programs.guarded
        )
        last = sealed[-1]
        head = made(Head, (before.session_id, last.event.seq, last.hash))
        batch = made(
            Batch, (before, head, sealed, lines, payloads, summary, programs or {}, actions)
        )
        store, now, seconds = self._store, self.clock.now(), settings.lease_seconds
        if self._new is None:
            self._lease = await store.append(lease, batch, now=now, lease_seconds=seconds)
        else:
            new, self._new = replace(self._new, first=batch), None
            self._lease = await store.create(new, owner=lease.owner, now=now, lease_seconds=seconds)
        self._stale = False
        self.configuration = configuration
        self.head = head
        self._events += sealed
        self._own_events += events
        for event in events:
            ledger.fold(event)
