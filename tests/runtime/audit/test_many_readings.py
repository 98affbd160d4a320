"""Whole reports of very many traces, one line each: walks through handbooks that use everything,
the same with one thing changed, and transcripts with everything that may be known of them.

A line counts the findings by their codes and ends with a digest of all that was told: whoever
changes what the audit says sees at once where. ``SOPILOT_REGOLD=1`` rewrites them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from random_transcripts import BOOKS as DESKS
from random_transcripts import random_transcript
from random_walks import WORLDS as PLAIN
from random_walks import Walk
from rich_walks import BOOKS as RICH
from rich_walks import RichWalk
from test_whole_reports import as_it_was, digest, lines_of
from trace_forgeries import _other, edited, labelled_trace, wanted_class
from trace_programs import judge, random_world
from value_traces import value_trace, wanted_value_class

from sopilot.language.handbook import Handbook
from sopilot.language.handbook.cel import judge as cel
from sopilot.language.program.model import Program
from sopilot.runtime.audit import Report, audit_trace
from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.audit.timeline import rows_of_trace
from sopilot.runtime.audit.transcript import Transcript
from sopilot.runtime.audit.transcripts import audit_transcript
from sopilot.runtime.audit.without_machine import audit_untracked
from sopilot.runtime.trace import SealedEvent
from sopilot.runtime.vm import Event, Judge

WALKS, FORGED, LABELLED, VALUED, TRANSCRIPTS = 130, 44, 160, 104, 1200
SHARE = 0.06
"""Of all forgeries of a trace."""
WITHHELD = {"$ref": "00", "bytes": 5}


def counted(reports: Sequence[Report]) -> str:
    codes = Counter(one.code for report in reports for one in report.findings)
    named = ", ".join(f"{code} {count}" for code, count in sorted(codes.items())) or "clean"
    return f"{named} {digest([[one.as_json(), *lines_of(one)] for one in reports])}"


def of_walks() -> Iterator[str]:
    rng = random.Random(21)
    for number in range(WALKS):
        name = "everything" if number % 2 else list(RICH)[number // 2 % len(RICH)]
        walk = RichWalk(rng, name, cel)
        walk.walk(rng.choice((20, 40, 80)))
        reports = [audit_trace(walk.programs, walk.events, judge=cel, ended=number % 5 > 0)]
        if number % 3 == 0:
            reports.append(audit_trace(walk.programs, walk.events))
        book = RICH[name]
        reports += [
            audit_untracked(book, walk.events, goal=goal, chain=(), judge=cel)
            for goal in ((*list(book.procedures)[:2], None) if number % 4 == 0 else ())
        ]
        shown = digest(
            [
                [asdict(row) for row in rows_of_trace(walk.events)],
                [render_text(one) for one in reports],
            ]
        )
        yield f"{number} {name}: {len(walk.events)} events, shown {shown}, {counted(reports)}"


def forged(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Each event once otherwise, in every way that one can be: with a field that says something
    else, nothing, or is withheld or gone; made by somebody else, elsewhere, later; left out,
    twice, or too late."""
    for place, one in enumerate(events):
        before, after = list(events[:place]), list(events[place + 1 :])
        for field, value in one.payload.items():
            others = {key: kept for key, kept in one.payload.items() if key != field}
            yield [*before, edited(one, payload=others), *after]
            for other in (_other(value), None, WITHHELD, 3):
                yield [*before, edited(one, payload={**one.payload, field: other}), *after]
        for actor in ("model", "machine", "runtime", "operator"):
            if actor != one.actor:
                yield [*before, edited(one, actor=actor), *after]
        for changes in (
            {"process": "p9"}, {"process": None}, {"frame": ""}, {"kind": "dance"},
            {"kind": "complete"}, {"kind": "fail"}, {"kind": "reuse"}, {"at": one.at + 9999.0},
            {"seq": one.seq + 1},
        ):  # fmt: skip
            yield [*before, edited(one, **changes), *after]
        yield renumbered([*before, *after])
        yield renumbered([*before, one, one, *after])
        yield renumbered([*before, *after[:1], one, *after[1:]])


def renumbered(events: Sequence[Event]) -> list[Event]:
    return [edited(one, seq=seq) for seq, one in enumerate(events)]


def of_forgeries() -> Iterator[str]:
    rng = random.Random(22)
    for number in range(FORGED):
        name, programs, events, judged = short_trace(rng, number)
        chosen = [one for one in forged(events) if rng.random() < SHARE]
        reports = [audit_trace(programs, one, judge=judged) for one in chosen]
        yield f"{number} {name}: {len(reports)} of {len(events)} events, {counted(reports)}"


def short_trace(
    rng: random.Random, number: int
) -> tuple[str, dict[str, Program], list[Event], Judge]:
    """One that comes to something in few events."""
    while True:
        if number % 4 == 3:
            world, value = value_trace(rng, wanted_value_class(number))
            programs, events, judged = dict(world.programs), value.events, cel
            name = value.label or "clean"
        elif number % 4 == 2:
            plain = random_world(rng)
            made = labelled_trace(plain, rng.randrange(2**40), None)
            programs, events, judged = dict(plain.programs), made.events, judge
            name = "random"
        else:
            kind: type[Walk] = RichWalk if number % 4 else Walk
            name = rng.choice(list(RICH if number % 4 else PLAIN))
            walk = kind(rng, name, cel)
            walk.walk(24)
            programs, events, judged = dict(walk.programs), tuple(walk.events), cel
        found = [one.event if isinstance(one, SealedEvent) else one for one in events]
        if 12 <= len(found) <= 26:
            return name, programs, found, judged


def of_labelled() -> Iterator[str]:
    rng = random.Random(23)
    for number in range(LABELLED):
        if number % 4 == 0:
            world = random_world(rng)
        trace = labelled_trace(world, rng.randrange(2**40), wanted_class(number))
        report = audit_trace(world.programs, trace.events, judge=judge)
        yield f"{number} {trace.label or 'clean'}: {counted([report])}"
    for number in range(VALUED):
        of_values, trace = value_trace(rng, wanted_value_class(number))
        report = audit_trace(of_values.programs, trace.events, judge=cel)
        yield f"{number} {trace.label or 'clean'}: {counted([report])}"


def of_transcripts() -> Iterator[str]:
    rng = random.Random(24)
    books = {**DESKS, **RICH}
    for number in range(TRANSCRIPTS):
        name, goal, transcript, options = random_transcript(rng, books)
        transcript = known_more(rng, books[name], transcript)
        if rng.random() < 0.2:
            options["enforced"] = {
                one.action: one.requires for one in books[name].procedures.values()
            }
        judged = cel if number % 7 else None
        report = audit_transcript(books[name], transcript, goal=goal, judge=judged, **options)
        yield f"{number} {name} {goal}: {len(transcript.calls)} calls, {counted([report])}"


def known_more(rng: random.Random, book: Handbook, transcript: Transcript) -> Transcript:
    """What others may know beside the messages."""
    names = [one.name for action in book.actions.values() for one in action.inputs]
    told = {name: rng.choice(("x", "y", 5, None)) for name in names if rng.random() < 0.2}
    spoken = " ".join(rng.sample(names, min(2, len(names)))).replace("_", " ")
    return replace(
        transcript,
        told=told if rng.random() < 0.5 else {},
        replies=rng.choice((0, 0, 1, 3)),
        dialog=rng.choice(("", f"What is your {spoken.upper()}?", "hello")),
        now=rng.choice(("", "2026-01-15T15:00:00")),
    )


def test_many_walks_are_read_as_they_were() -> None:
    as_it_was("many_walks", of_walks())


def test_many_forgeries_are_read_as_they_were() -> None:
    as_it_was("many_forgeries", of_forgeries())


def test_many_labelled_traces_are_read_as_they_were() -> None:
    as_it_was("many_labelled", of_labelled())


def test_many_transcripts_are_read_as_they_were() -> None:
    as_it_was("many_transcripts", of_transcripts())
