"""Whole reports, word for word: of made traces, and of transcripts by chance.

``SOPILOT_REGOLD=1`` rewrites them. A line is a finding; what a trace's events and the score card
are, and what the guard said, stands in its first line.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from random_transcripts import BOOKS, random_transcript
from random_walks import BOOKS as BOOKS_OF_WALKS
from random_walks import WORLDS, Walk
from trace_executions import SESSION
from trace_forgeries import _other, edited, labelled_trace, wanted_class
from trace_programs import World, judge, random_world
from value_traces import value_trace, wanted_value_class
from value_worlds import ValueWorld

from sopilot.language.handbook.cel import judge as cel
from sopilot.language.program.model import Act, Literal
from sopilot.runtime.audit import Report, audit_trace
from sopilot.runtime.audit._audit_state import AuditState
from sopilot.runtime.audit._auditing import read_events
from sopilot.runtime.audit._call_reading import CallReading, read_call
from sopilot.runtime.audit._resolved_function import read_program
from sopilot.runtime.audit._state import FrameView
from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.audit.timeline import rows_of_trace
from sopilot.runtime.audit.transcripts import audit_transcript
from sopilot.runtime.audit.without_machine import audit_untracked
from sopilot.runtime.proof import Licence, license_call
from sopilot.runtime.trace import SealedEvent, replay
from sopilot.runtime.vm import JSON, Configuration, Event, Judge, Position, Process
from sopilot.runtime.vm.errors import TraceError
from sopilot.runtime.vm.state import Frame
from sopilot.runtime.vm.terms import plain_arguments
from sopilot.runtime.vm.values import canonical

GOLDEN = Path(__file__).parent / "golden"
TRACES, VALUES, TRANSCRIPTS, LICENCES, WALKS = 160, 104, 240, 66, 200


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()[:8]


def lines_of(report: Report) -> Iterator[str]:
    for one in report.findings:
        place = f"{one.process or '-'} {one.frame or '-'} {one.predicate or '-'}"
        details = json.dumps(dict(one.details), sort_keys=True)
        yield f"  #{one.seq} {one.severity} {one.code} {place} {details}"
        yield f"    {one.explanation}" + (f" | {one.sentence}" if one.sentence else "")
    for refusal in report.refusals:
        causes = ", ".join(
            f"{one['predicate']} {one['holds']} {one['evidence']} {one['return']}"
            for one in refusal.causes
        )
        told = digest([dict(one) for one in refusal.causes])
        follows = f"{refusal.obstacle}|{refusal.follows}|{refusal.starts}"
        whose = f"{refusal.process} {refusal.goal}"
        yield f"  refused #{refusal.seq} {whose}: {causes} {told} {follows}"


def summed(report: Report) -> str:
    card = report.score_card
    grades = " ".join(f"{name} {count}" for name, count in card.grades.items()) or "-"
    return (
        f"{card.outcome}, {card.checks_with_evidence}/{card.checks_needing_evidence}/{card.checks} "
        f"({grades}) {digest(report.as_json())}"
    )


def of_traces() -> Iterator[str]:
    rng = random.Random(7)
    for number in range(TRACES):
        if number % 8 == 0:
            world = random_world(rng)
        trace = labelled_trace(world, rng.randrange(2**40), wanted_class(number))
        sealed = any(isinstance(one, SealedEvent) for one in trace.events)
        name = SESSION if sealed else None
        plain = [one.event if isinstance(one, SealedEvent) else one for one in trace.events]
        report = audit_trace(world.programs, trace.events, judge=judge, session_id=name)
        events = digest([list(one) for one in plain])
        yield f"{number} {trace.label or 'clean'}: {len(plain)} events {events}, {summed(report)}"
        yield from (f"  guard #{seq}: {missing or '-'}" for seq, missing in trace.guarded.items())
        yield from lines_of(report)


def of_values() -> Iterator[str]:
    rng = random.Random(8)
    for number in range(VALUES):
        world, trace = value_trace(rng, wanted_value_class(number))
        report = audit_trace(world.programs, trace.events, judge=cel)
        events = digest([list(one) for one in trace.events])
        yield f"{number} {trace.label or 'clean'}: {events}, {summed(report)}"
        yield from (f"  guard #{seq}: {missing or '-'}" for seq, missing in trace.guarded.items())
        yield from lines_of(report)


def of_licences() -> Iterator[str]:
    """What the guard would say of the goal's call after every fifth event, wherever it stands;
    under it what the audit would. Neither is ever content where the other is not."""
    rng = random.Random(10)
    for number in range(LICENCES):
        if number % 3:
            world: World = random_world(rng)
            run = labelled_trace(world, rng.randrange(2**40), None)
        else:
            world, run = value_trace(rng, wanted_value_class(number))
        judged = cel if isinstance(world, ValueWorld) else judge
        plain = [one.event if isinstance(one, SealedEvent) else one for one in run.events]
        yield f"{number}"
        now = world.machine.initial()
        for first in range(0, len(plain), 5):
            try:
                now = replay(world.machine, plain[first : first + 5], begin=now)
            except TraceError:
                break  # what was forged is nobody's run
            codes = {goal: read_program(goal, one) for goal, one in world.programs.items()}
            read = read_events(codes, plain[: now.next_seq], judge=judged)
            for process in now.processes.values():
                step, arguments, licence = licence_at(world, now, process, judged)
                reading = reading_at(read, process.id, step, arguments)
                yield f"  {now.next_seq} {process.id} {told(licence)}"
                if reading is not None:
                    yield from (f"    {one.code}: {one.why}" for one in reading.doubts)
                    assert bool(reading.doubts) is bool(licence.missing)
                    if not reading.doubts:
                        assert reading.grade == licence.grade


def licence_at(
    world: World, now: Configuration, process: Process, judged: Judge
) -> tuple[Act, dict[str, JSON], Licence]:
    """As if the process stood at its goal, with the values that it knows."""
    layout = world.machine.programs.layouts[process.goal]
    steps = [one for one in layout.entry.steps.values() if isinstance(one, Act) and one.goal]
    step, values = steps[0], {**process.arguments, **process.known}
    frame = Frame(layout.entry.name, step.label, values, {}, None, 0, layout.entry.name)
    here = Position(now, process, frame, layout, layout.entry, step, world.machine.programs)
    given = {
        name: term.value if isinstance(term, Literal) else values[term.name]
        for name, term in plain_arguments(step.arguments)
        if isinstance(term, Literal) or term.name in values
    }
    return step, given, license_call(world.machine.programs, here, given, judged)


def told(licence: Licence) -> str:
    calls = [[one.act.action, dict(one.arguments)] for one in licence.calls]
    return licence.missing or f"{licence.grade} {digest(licence.as_json())} {digest(calls)}"


def reading_at(
    run: AuditState, process: str, step: Act, arguments: dict[str, JSON]
) -> CallReading | None:
    """The same as the audit reads it."""
    seen = run.processes[process]
    entry, values = seen.program.entry, {**seen.arguments, **seen.known}
    at_goal = FrameView(entry, step.label, values, None, 0, entry.function.name)
    return read_call(run, replace(seen, frames=[at_goal]), step.action, arguments)


def of_walks() -> Iterator[str]:
    """What the machine did and said, what the audit finds, and what it finds where one field of
    one event says something else."""
    rng = random.Random(11)
    for number in range(WALKS):
        name = list(WORLDS)[number % len(WORLDS)]
        walk = Walk(rng, name, cel)
        walk.walk(rng.choice((8, 16, 32)))
        ended = rng.random() < 0.8
        report = audit_trace(walk.programs, walk.events, judge=cel, ended=ended)
        rows = [list(one) for one in walk.events]
        made = f"{len(rows)} events {digest(rows)}, answers {digest(walk.answers)}"
        shown = digest([asdict(row) for row in rows_of_trace(walk.events)])
        printed = digest([render_text(report), *untracked(name, walk.events)])
        yield f"{number} {name}: {made}, rows {shown}, printed {printed}, {summed(report)}"
        assert replay(walk.machine, walk.events) == walk.now
        for one in report.findings:
            yield f"  #{one.seq} {one.severity} {one.code} {one.frame or '-'}: {one.explanation}"
        if number % 32 < len(WORLDS) and len(rows) < 30:
            yield from forged_lines(walk, report)


def forged_lines(walk: Walk, report: Report) -> Iterator[str]:
    """Every field of every event once as something else, and what is found first then."""
    for place, one in enumerate(walk.events):
        new: dict[str, str] = {}
        for field in (*one.payload, "frame", "kind"):
            if field in one.payload:
                payload = {**one.payload, field: _other(one.payload[field])}
                changed = edited(one, payload=payload)
            else:
                changed = edited(one, **{field: _other(getattr(one, field))})
            events = [*walk.events[:place], changed, *walk.events[place + 1 :]]
            found = audit_trace(walk.programs, events, judge=cel).findings
            other = [each for each in found if each not in report.findings][:1]
            new[field] = "".join(f"#{each.seq} {each.code} {each.explanation}" for each in other)
        told = ", ".join(field for field, words in new.items() if words)
        yield f"  forged {place} {one.kind}: {told} {digest(new)}"


def untracked(name: str, events: Sequence[Event]) -> Iterator[JSON]:
    """The same calls as those of an agent without a machine."""
    for goal in (*BOOKS_OF_WALKS[name].procedures, None) if name in BOOKS_OF_WALKS else ():
        book = BOOKS_OF_WALKS[name]
        yield audit_untracked(book, events, goal=goal, chain=(), judge=cel).as_json()


def of_transcripts() -> Iterator[str]:
    rng = random.Random(9)
    for number in range(TRANSCRIPTS):
        name, goal, transcript, options = random_transcript(rng)
        report = audit_transcript(BOOKS[name], transcript, goal=goal, judge=cel, **options)
        yield f"{number} {name} {goal}: {len(transcript.calls)} calls, {summed(report)}"
        yield from (f"  #{one.seq} {one.code} {one.predicate or '-'}" for one in report.findings)


def as_it_was(name: str, lines: Iterator[str]) -> None:
    found = [re.sub(r"\s+$", "", line) for line in lines]
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text("\n".join(found) + "\n", "utf-8")
    assert found == file.read_text("utf-8").splitlines()


def test_traces_are_read_as_they_were() -> None:
    as_it_was("traces", of_traces())


def test_traces_of_values_are_read_as_they_were() -> None:
    as_it_was("values", of_values())


def test_licences_are_given_as_they_were() -> None:
    as_it_was("licences", of_licences())


def test_walks_are_made_and_read_as_they_were() -> None:
    as_it_was("walks", of_walks())


def test_transcripts_are_read_as_they_were() -> None:
    as_it_was("transcripts", of_transcripts())
