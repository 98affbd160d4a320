"""Guarded calls of a transcript, by the reading that sessions are judged with.

The calls become those of a session that stands at the goal action of a compiled procedure. A
transcript has no verdicts of a model and no approvals, and its agent asks in its own words: a
requirement that rests on those is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sopilot.audit.call_reading import AGAINST, Doubt, read_call
from sopilot.audit.leaf_reading import GATE, NEWER, STALE
from sopilot.audit.state import AuditState, ProcessView, SessionCall
from sopilot.audit.transcript_files import TranscriptCall
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import Handbook
from sopilot.machine.replay import Replay
from sopilot.machine.state import NEVER, Frame, Process
from sopilot.program.model import Act
from sopilot.values.json import JSON, Judge

SHOWN = frozenset({AGAINST, GATE, NEWER, STALE})
"""Doubts that the calls alone show; for all others a transcript may merely lack something."""


@dataclass(slots=True)
class GuardedCalls:
    """``run`` has the calls so far."""

    run: AuditState = field(init=False)
    handbook: Handbook
    judge: Judge | None
    now: str = ""

    def __post_init__(self) -> None:
        units = compile_handbook(self.handbook)
        replay = Replay({goal: unit.program for goal, unit in units.items()})
        self.run = AuditState(replay, self.judge, self.now)

    def record(self, call: TranscriptCall) -> None:
        made = SessionCall(call.index, call.action, call.arguments or {})
        made.ok, made.value = call.ok, call.value
        made.answered = call.index if call.answered else None
        made.unknown = call.let_through and not call.ok
        self.run.session_calls.append(made)

    def doubts(
        self, call: TranscriptCall, goal: str, values: Mapping[str, JSON]
    ) -> tuple[Doubt, ...]:
        """What the calls so far don't prove of ``goal`` for the arguments of ``call``."""
        program = self.run.programs[goal]
        entry = program.entry
        steps = [step for step in entry.function.steps if isinstance(step, Act) and step.goal]
        if not steps:
            return ()
        frame = Frame(entry.name, steps[0].label, values, {}, NEVER, entry.name)
        state = Process("p1", goal, "", values, (frame,), known=values)
        process = ProcessView("p1", goal, program, state)
        reading = read_call(self.run, process, call.action, call.arguments or {})
        return reading.doubts if reading is not None else ()
