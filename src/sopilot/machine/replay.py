"""From a stored trace back to the run: restore the values, make the events again. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration, Status
from sopilot.messages.errors import TraceError
from sopilot.program.model import Program
from sopilot.trace.chain import SealedEvent
from sopilot.trace.codec import decode_operation
from sopilot.trace.events import PROGRAM_CHANGED, REJECTED, RESUMED, REUSE, BindEvidence, Event
from sopilot.trace.redaction import SCALARS, is_reference, restore
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
    these programs would not have made. A trace may end anywhere; `X
    does what the machine still owed.
    """
    machine = programs if isinstance(programs, Machine) else Machine(programs)
    configuration = begin if begin is not None else machine.initial()
    for index, entry in enumerate(events):
        event = entry.event if isinstance(entry, SealedEvent) else entry
        configuration, made = _again(machine, configuration, event, index)
        if made != event:
            raise TraceError(
                f"the program wouldn't produce this event: {_difference(made, event)}", index
            )
    return configuration


class Step(NamedTuple):
    """One event between the configurations before and after it.

    ``made`` is the event that the programs make there, ``None`` where the recorded one can't be
    read. ``difference`` says how the two differ; it is empty where they don't.
    """

    before: Configuration
    event: Event
    after: Configuration
    made: Event | None
    difference: str = ""


class Replay:
    """Makes the events of a trace again, one by one, whatever the trace says.

    A withheld value may be any value. Where that leaves two continuations, the recorded event
    says which one was taken.
    """

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self.continue_with(programs)
        self.configuration = self.machine.initial()

    def continue_with(self, programs: Mapping[str, Program]) -> None:
        """Run other programs from here on."""
        self._programs = programs
        self.machine = self._machine(redacted=True)
        self._exact: Machine | None = None

    def _machine(self, *, redacted: bool) -> Machine:
        hashes = dict.fromkeys(self._programs, "")
        return Machine(self._programs, limits=_UNLIMITED, hashes=hashes, redacted=redacted)

    def step(self, event: Event, *, lost: bool = False) -> Step:
        """Advance by one event. In a process that is ``lost`` nothing is compared: only calls,
        their results, and the process's end are followed."""
        before = self.configuration
        if before.next_seq != event.seq:
            before = before.numbered(event.seq)
        if event.kind == REJECTED or (lost and event.kind not in FOLLOWED):
            step = Step(before, event, _ended(before, event, lost), event)
        else:
            step = self._compared(self.machine, before, event)
            if step.difference:
                if self._exact is None:
                    self._exact = self._machine(redacted=False)
                exact = self._compared(self._exact, before, event)
                step = step if exact.difference else exact
        self.configuration = step.after
        return step

    def _compared(self, machine: Machine, before: Configuration, event: Event) -> Step:
        try:
            after, made = _again(machine, before, event, event.seq)
        except TraceError as problem:
            withheld = event.kind in RECORDED and any(map(is_reference, event.payload.values()))
            why = "" if withheld else str(problem)
            return Step(before, event, before.numbered(event.seq + 1), None, why)
        if made.kind == REJECTED:
            return Step(before, event, after, made, str(made.payload["reason"]))
        return Step(before, event, after, made, _contradiction(made, event))


_UNLIMITED = Limits(sys.maxsize, sys.maxsize, sys.maxsize)
"""A session may have run under any limits; a trace has an end."""

FOLLOWED = frozenset({"start", "domain_call", "domain_result", "decision", "note", RESUMED})
"""Kinds of event that are followed even in a process whose position is lost."""

RECORDED = ("note", "decision")
"""Kinds of event that move nothing: what they say may be withheld."""


def _ended(before: Configuration, event: Event, lost: bool) -> Configuration:
    process = before.process
    if not lost or process is None or event.kind not in ("complete", "fail"):
        return before.numbered(event.seq + 1)
    return end_process(before, Status.COMPLETED if event.kind == "complete" else Status.FAILED)


def end_process(configuration: Configuration, status: Status) -> Configuration:
    """The configuration after the active process has ended, wherever it stood."""
    process = configuration.process
    assert process is not None
    return configuration.updated(process.with_status(status))._replace(active=None)


def _contradiction(made: Event, recorded: Event) -> str:
    """The first thing that the recorded event says otherwise; a withheld value contradicts
    nothing."""
    if (recorded.process, recorded.frame) != (made.process, made.frame):
        return (
            f"it names `{recorded.process}` at `{recorded.frame}`, the trace stands at "
            f"`{made.process}` at `{made.frame}`"
        )
    if made.actor != recorded.actor:
        return f"`actor` would be `{made.actor}`, not `{recorded.actor}`"
    for key, value in made.payload.items():
        if key in _TAKEN_OVER:
            continue
        if key not in recorded.payload:
            return f"`{key}` is missing"
        other = recorded.payload[key]
        if other is not value and not _identical(other, value):
            return f"`{key}` says {_short(other)}, the trace shows {_short(value)}"
    return ""


_TAKEN_OVER = frozenset({"arguments", "content", "details", "ground", "program", "text", "value"})
"""Fields that the machine takes over from the operation; its words for a ground; and the program's
hash, which is the store's to verify."""


def _identical(left: JSON, right: JSON) -> bool:
    """Exactly equal: ``True`` is not 1."""
    if type(left) is type(right) and type(left) in SCALARS:
        return left == right
    if is_reference(left) or is_reference(right):
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_identical(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_identical, left, right))
    return bool(left == right)


def _short(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _again(
    machine: Machine, configuration: Configuration, event: Event, index: int
) -> tuple[Configuration, Event]:
    payload = event.payload
    if event.kind == RESUMED or (event.kind == REUSE and "result" not in payload):
        due = machine.due(configuration, event.at)
        if due is None and event.kind == REUSE:
            due = machine.reusable(configuration, event.at)
        if due is None:
            raise TraceError(f"`{event.kind}` wasn't due", index)
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
    after, made = machine.apply(
        configuration,
        operation,
        at=event.at,
        actor=event.actor,
        ground=ground if isinstance(ground, str) else None,
        grade=(lambda *_: grade) if isinstance(grade, str) else None,
    )
    if event.kind == made.kind == REJECTED and "reason" in payload:
        # Another release may have worded it differently; its code is compared.
        made = made._replace(payload={**made.payload, "reason": payload["reason"]})
    return after, made


def _difference(made: Event, event: Event) -> str:
    """The first field that differs, so that a person knows where to look."""
    for name in ("seq", "kind", "actor", "process", "frame"):
        ours, theirs = getattr(made, name), getattr(event, name)
        if ours != theirs:
            return f"`{name}` would be `{ours}`, not `{theirs}`"
    keys = sorted(
        key
        for key in {*made.payload, *event.payload}
        if made.payload.get(key) != event.payload.get(key)
    )
    return f"`payload.{keys[0]}` differs" if keys else "its time differs"


def whole_events(events: Sequence[SealedEvent], payloads: Mapping[str, JSON]) -> list[Event]:
    """The events with every payload in its place that ``payloads`` knows."""
    if not payloads:
        return [sealed.event for sealed in events]
    return [restore(sealed.event, payloads) for sealed in events]


def program_changes(events: Sequence[Event]) -> list[tuple[int, dict[str, str]]]:
    """Where a session went over to other programs: (index of the note, goal → hash)."""
    results = []
    for index, event in enumerate(events):
        if event.note == PROGRAM_CHANGED and event.actor == "runtime":
            programs = event.details.get("programs")
            if not isinstance(programs, Mapping):
                raise TraceError("a program change doesn't name the programs", index)
            results.append((index, {str(goal): str(sha) for goal, sha in programs.items()}))
    return results
