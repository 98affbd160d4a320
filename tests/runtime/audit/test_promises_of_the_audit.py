"""Every function of the audit returns what it says it does, over traces of every kind, and takes
for granted what is written down."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import test_many_readings as many
from promised_types import held_to, promised_by
from random_transcripts import BOOKS as DESKS
from random_transcripts import random_transcript
from rich_walks import BOOKS as RICH
from rich_walks import RichWalk
from test_audit_trace import Desk
from written_defaults import as_written

from sopilot.language.handbook.cel import judge as cel
from sopilot.runtime import audit as room
from sopilot.runtime.audit import audit_trace
from sopilot.runtime.audit.transcripts import audit_transcript

MODULES = {
    f"sopilot.runtime.audit.{one.name}": import_module(f"sopilot.runtime.audit.{one.name}")
    for one in iter_modules(room.__path__)
}
PROMISED = promised_by(MODULES)


def test_what_is_promised_is_returned() -> None:
    as_written(MODULES, Path(__file__).parent / "golden" / "defaults.txt")
    assert len(PROMISED) > 250
    rng = random.Random(31)
    walks = []
    for number in range(12):
        walk = RichWalk(rng, list(RICH)[number % len(RICH)], cel)
        walk.walk(40)
        walks.append(walk)
    short = [many.short_trace(rng, number) for number in range(12)]
    books = {**DESKS, **RICH}
    transcripts = [random_transcript(rng, books) for _ in range(50)]
    paid = Desk().log_in().check_funds().approve().pay()
    with held_to(PROMISED) as broken:
        for walk in walks:
            audit_trace(walk.programs, walk.events, judge=cel)
        for _, programs, events, judged in short:
            for one in list(many.forged(events))[::32]:
                audit_trace(programs, one, judge=judged).as_json()
        for name, goal, transcript, options in transcripts:
            audit_transcript(books[name], transcript, goal=goal, judge=cel, **options).as_json()
        assert paid.report().as_json()
    broken.pop("BoundSlot.side", None)  # neither side is a third truth, which conditions see
    assert broken == {}
