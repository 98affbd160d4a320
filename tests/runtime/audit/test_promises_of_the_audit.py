"""Every function of the audit returns what it says it does, over traces of every kind."""

from __future__ import annotations

import random
import sys

import test_many_readings as many
from promised_types import held_to, promised_by
from random_transcripts import BOOKS as DESKS
from random_transcripts import random_transcript
from rich_walks import BOOKS as RICH
from rich_walks import RichWalk
from test_audit_trace import Desk

from sopilot.language.handbook.cel import judge as cel
from sopilot.runtime.audit import audit_trace
from sopilot.runtime.audit.transcripts import audit_transcript

PROMISED = promised_by(
    {name: one for name, one in sys.modules.items() if name.startswith("sopilot.runtime.audit")}
)


def test_what_is_promised_is_returned() -> None:
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
