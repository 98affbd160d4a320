"""Open a new session, attach to a stored one, or resume it."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypedDict, Unpack

from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import ProgramChanged, RunEnded, SopilotError
from sopilot.program.model import Program
from sopilot.protocols import Clock, SystemClock, Tools
from sopilot.records.loading import load, loaded
from sopilot.records.people import Principal, load_people, requester_name
from sopilot.records.privacy import settings_here
from sopilot.records.store import Lease, NewSession, SessionRecord, Settings, Store
from sopilot.records.versions import require_released
from sopilot.session.session import Session
from sopilot.trace.chain import Head, genesis
from sopilot.trace.events import ABOUT, OPENED, PROGRAM_CHANGED, TAKEN_UP, Actor, Fail, Note
from sopilot.values.json import JSON, Judge, plain_mapping, same_name


def default_owner() -> str:
    """A name that no other opening has: host, process and a random part."""
    return f"{platform.node() or 'here'}:{os.getpid()}:{secrets.token_hex(4)}"


METADATA_FORMAT = 1


class SessionOptions(TypedDict, total=False):
    """How a session is opened. ``extra`` is stored with it: a task, an initial state. The
    ``requester`` asks for what is done in it, and so can't approve it; a store that requires
    identity takes only a person who proved who they are. ``session_id`` is for reproducible
    traces: an id that others can guess doesn't protect against transplanted traces. ``judge``
    evaluates verdicts, by default the handbook's."""

    tools: Tools | None
    clock: Clock | None
    model: str
    judge: Judge | None
    owner: str | None
    extra: Mapping[str, JSON] | None
    session_id: str | None
    requester: Principal | str | None


async def open_session(
    store: Store,
    programs: Mapping[str, Program] | ProgramSet,
    *,
    handbook: str = "",
    view: str = "",
    settings: Settings | None = None,
    **options: Unpack[SessionOptions],
) -> Session:
    """Open a new session under an unguessable id, owned by the caller."""
    own = ProgramSet.of(programs)
    people = await load_people(store)
    settings = await settings_here(store, people, settings or Settings())
    clock = options.get("clock") or SystemClock()
    await require_released(store, people, handbook, own.hashes, clock.now())
    metadata: dict[str, JSON] = {
        "format": METADATA_FORMAT,
        "handbook": handbook,
        "goals": list(own.programs),
        "view": view,
        "model": options.get("model", ""),
        "programs": dict(own.hashes),
        "settings": settings.as_json(),
        "salt": secrets.token_hex(16),
        "extra": dict(options.get("extra") or {}),
    }
    if name := requester_name(people, options.get("requester")):
        metadata["requester"] = name
    session_id = options.get("session_id") or secrets.token_hex(16)
    new = NewSession(session_id, metadata, own.texts)
    now = clock.now()
    start = Head(new.id, -1, genesis(new.id))
    record = SessionRecord(new.id, now, now, plain_mapping(metadata), {}, start)
    nothing = await loaded(store, record, [], {}, (own,), settings)
    owner = options.get("owner") or default_owner()
    lease = Lease(new.id, owner, 1, now + settings.lease_seconds)
    tools, judge = options.get("tools"), options.get("judge")
    session = Session(store, nothing, lease, tools=tools, clock=clock, judge=judge, new=new)
    async with session.writing():
        await _note_opening(session)
    return session


class AttachOptions(TypedDict, total=False):
    """How a stored session is taken. ``programs`` are the ones the caller would run now; without
    them the stored ones go on. ``take_over`` takes it from an owner that is still there."""

    tools: Tools | None
    clock: Clock | None
    programs: Mapping[str, Program] | ProgramSet | None
    take_over: bool
    judge: Judge | None
    owner: str | None


async def resume_session(
    store: Store,
    session_id: str,
    *,
    accept_changed: bool = False,
    before: Callable[[Session], Awaitable[None]] | None = None,
    requester: Principal | str | None = None,
    **options: Unpack[AttachOptions],
) -> Session:
    """Resume a session as it stood, owned by the caller.

    ``before`` is awaited before it goes on: a simulator may have to catch up. ``requester`` asks
    for the rest of it, and so can't approve it either. Raises ``LeaseHeld``, ``ProgramChanged``,
    ``TraceBroken``.
    """
    programs = options.get("programs")
    name = requester_name(await load_people(store), requester)
    session = await attach_session(store, session_id, **options)
    try:
        if not session.events:
            async with session.writing():
                await _note_opening(session)
        await note_requester(session, name)
        if before is not None:
            await before(session)
        await session.take_up()
        if programs is not None:
            async with session.writing():
                await _check_programs(session, ProgramSet.of(programs), accept_changed)
    except SopilotError:
        with suppress(RunEnded):
            await session.release()
        raise
    return session


async def note_requester(session: Session, name: str) -> None:
    """Note who asks for the rest of a session, so that this person can't approve it."""
    if name and same_name(name) not in session.ledger.requesters:
        async with session.writing():
            await session.step(Note(TAKEN_UP, {"requester": name}))


async def attach_session(
    store: Store, session_id: str, **options: Unpack[AttachOptions]
) -> Session:
    """Take a session as it stands, without recording an interruption: to decide something."""
    clock = options.get("clock") or SystemClock()
    record = await store.record(session_id)
    seconds = record.metadata.get("settings", {}).get("lease_seconds", Settings().lease_seconds)
    lease = await store.acquire(
        session_id,
        owner=options.get("owner") or default_owner(),
        now=clock.now(),
        lease_seconds=float(seconds),
        take_over=options.get("take_over", False),
    )
    programs = options.get("programs")
    known = (ProgramSet.of(programs),) if programs is not None else ()
    try:
        result = await load(store, session_id, known=known)
    except SopilotError:
        with suppress(RunEnded):
            await store.release(lease)
        raise
    tools, judge = options.get("tools"), options.get("judge")
    return Session(store, result, lease, tools=tools, clock=clock, judge=judge)


async def _note_opening(session: Session) -> None:
    """Record the metadata in the trace, so that a header can't be swapped."""
    about = {name: session.metadata.get(name) for name in ("programs", *ABOUT)}
    if session.metadata.get("requester"):
        about["requester"] = session.metadata["requester"]
    await session.step(Note(OPENED, about))


async def _check_programs(session: Session, present: ProgramSet, accepted: bool) -> None:
    stored = session.programs.hashes
    goals = {*stored, *present.hashes}
    changes = {
        goal: (stored.get(goal), present.hashes.get(goal))
        for goal in goals
        if stored.get(goal) != present.hashes.get(goal)
    }
    if not changes:
        return
    if not accepted:
        raise ProgramChanged(changes)
    handbook = str(session.metadata.get("handbook") or "")
    people = await load_people(session._store)
    await require_released(session._store, people, handbook, present.hashes, session.clock.now())
    # A cursor means nothing in another program: what runs there ends, on record.
    while _runs_any(session, changes):
        await session.step(Fail("the program was changed"), actor=Actor.RUNTIME)
    details: dict[str, JSON] = {
        "programs": dict(present.hashes),
        "changes": {goal: list(pair) for goal, pair in sorted(changes.items())},
    }
    machine = present.machine(session.settings.limits)
    configuration, event = machine.apply(
        session.configuration, Note(PROGRAM_CHANGED, details), at=session.clock.now()
    )
    await session.change_programs(present, event, configuration)


def _runs_any(session: Session, goals: Mapping[str, object]) -> bool:
    configuration = session.configuration
    running = [*configuration.suspended, *([configuration.active] if configuration.active else [])]
    return any(configuration.processes[item].goal in goals for item in running)
