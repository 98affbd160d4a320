"""From a stored trace back to the run: verify, restore, replay. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.runtime.records import Register
from sopilot.runtime.session.errors import TraceBroken
from sopilot.runtime.session.ledger import CallLedger
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.trace import Head, SealedEvent, replay, restore, verify_chain
from sopilot.runtime.trace.runtime_notes import PROGRAM_CHANGED
from sopilot.runtime.vm import JSON, Configuration, Event, Limits, TraceError

ProgramsByHash = Mapping[frozenset[tuple[str, str]], ProgramSet]
"""The program sets a trace names, by their goal → hash pairs."""


@dataclass(frozen=True, slots=True)
class Recovered:
    configuration: Configuration
    ledger: CallLedger
    programs: ProgramSet
    register: Register


def whole_events(events: Sequence[SealedEvent], payloads: Mapping[str, JSON]) -> list[Event]:
    """The events with every payload in its place that ``payloads`` knows."""
    if not payloads:
        return [sealed.event for sealed in events]
    return [restore(sealed.event, payloads) for sealed in events]


def program_changes(events: Sequence[Event]) -> list[tuple[int, dict[str, str]]]:
    """Where a session went over to other programs: (index of the note, goal → hash)."""
    found = []
    for index, event in enumerate(events):
        if (
            event.kind == "note"
            and event.actor == "runtime"
            and event.payload.get("name") == PROGRAM_CHANGED
        ):
            details = event.payload.get("details")
            programs = details.get("programs") if isinstance(details, Mapping) else None
            if not isinstance(programs, Mapping):
                raise TraceError("a change of programs does not name them", index)
            found.append((index, {str(goal): str(sha) for goal, sha in programs.items()}))
    return found


def recover(
    session_id: str,
    events: Sequence[SealedEvent],
    *,
    head: Head,
    hashes: Mapping[str, str],
    programs: ProgramsByHash,
    payloads: Mapping[str, JSON],
    limits: Limits,
    replaying: bool = True,
) -> Recovered:
    """Raises ``TraceBroken`` when the chain does not hold, ``TraceError`` when the events are
    not what these programs make. Without ``replaying`` the chain is verified and the register
    made: of a session whose contents were erased nothing else can be told."""
    broken = verify_chain(events, session_id=session_id, head=head)
    if broken is not None:
        raise TraceBroken(session_id, broken)
    whole = whole_events(events, payloads)
    current = programs[frozenset(hashes.items())]
    configuration = Configuration()
    register = Register(current.changing)
    begin = 0
    for index, changed in [*program_changes(whole), (len(events), None)]:
        if replaying:
            configuration = _replay(current, limits, configuration, whole[begin:index], begin)
        for event, sealed in zip(whole[begin:index], events[begin:index], strict=True):
            register.fold(event, sealed.event)
        begin = index
        if changed is not None:
            current = programs[frozenset(changed.items())]
            register.changing = current.changing
    ledger = CallLedger()
    for event in whole if replaying else ():
        ledger.fold(event)
    return Recovered(configuration, ledger, current, register)


def _replay(
    programs: ProgramSet,
    limits: Limits,
    configuration: Configuration,
    events: Sequence[Event],
    offset: int,
) -> Configuration:
    try:
        return replay(programs.machine(limits), events, begin=configuration)
    except TraceError as problem:
        if problem.index is None or not offset:
            raise
        raise TraceError(str(problem.__cause__ or problem), problem.index + offset) from problem
