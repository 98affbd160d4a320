"""From a stored trace back to the run: verify, restore, replay. Pure.

A configuration from its events alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.messages.errors import TraceError
from sopilot.program.model import Program
from sopilot.trace.chain import SealedEvent
from sopilot.trace.codec import decode_operation
from sopilot.trace.events import PROGRAM_CHANGED, REJECTED, RESUMED, REUSE, BindEvidence, Event
from sopilot.trace.redaction import restore
from sopilot.values.json import JSON


def replay(
    programs: Mapping[str, Program] | Machine,
    events: Iterable[Event | SealedEvent],
    *,
    begin: Configuration | None = None,
) -> Configuration:
    """The configuration after the last event, exactly as the run had it; ``begin`` is the one
    before the first, where the events go on from somewhere.

    Every event is made again and compared: ``TraceError`` names the first that
    these programs would not have made. A trace may end anywhere; ``settle``
    does what the machine still owed.
    """
    machine = programs if isinstance(programs, Machine) else Machine(programs)
    configuration = begin if begin is not None else machine.initial()
    for index, entry in enumerate(events):
        event = entry.event if isinstance(entry, SealedEvent) else entry
        configuration, made = _again(machine, configuration, event, index)
        if made != event:
            raise TraceError(
                f"the program does not make this event: {_difference(made, event)}", index
            )
    return configuration


def _again(
    machine: Machine, configuration: Configuration, event: Event, index: int
) -> tuple[Configuration, Event]:
    payload = event.payload
    if event.kind == RESUMED or (event.kind == REUSE and "result" not in payload):
        due = machine.due(configuration, event.at)
        if due is None and event.kind == REUSE:
            due = machine.reusable(configuration, event.at)
        if due is None:
            raise TraceError(f"nothing was due for `{event.kind}`", index)
        return due
    try:
        if event.kind == REJECTED:
            inner = payload.get("operation")
            if not isinstance(inner, Mapping):
                raise TraceError("`operation` must be an object")
            if inner.get("operation") == "misshapen":
                return configuration.numbered(configuration.next_seq + 1), event
            operation = decode_operation(inner)
        elif event.kind == REUSE:
            operation = decode_operation(payload, BindEvidence.kind)
        else:
            operation = decode_operation(payload, event.kind)
    except TraceError as problem:
        raise TraceError(str(problem), index) from problem
    ground, grade = payload.get("ground"), payload.get("grade")
    return machine.apply(
        configuration,
        operation,
        at=event.at,
        actor=event.actor,
        ground=ground if isinstance(ground, str) else None,
        grade=(lambda *_: grade) if isinstance(grade, str) else None,
    )


def _difference(made: Event, found: Event) -> str:
    """The first field that differs, so that a person knows where to look."""
    for name in ("seq", "kind", "actor", "process", "frame"):
        ours, theirs = getattr(made, name), getattr(found, name)
        if ours != theirs:
            return f"`{name}` would be `{ours}`, not `{theirs}`"
    keys = sorted(
        key
        for key in {*made.payload, *found.payload}
        if made.payload.get(key) != found.payload.get(key)
    )
    return f"`payload.{keys[0]}` differs" if keys else "its time differs"


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
