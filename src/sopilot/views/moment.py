"""The state of a session from which a view writes the frame message of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.messages.scaffold import LONG_TOOL, StepTool
from sopilot.protocols import Message
from sopilot.values.json import JSON, Judge
from sopilot.views.briefing import Briefing


@dataclass(frozen=True, slots=True)
class Moment:
    """``automation`` and ``judge`` are the session's own, for views that look ahead; ``step`` is
    the bookkeeping tool as it is offered."""

    briefing: Briefing
    machine: Machine
    configuration: Configuration
    dialog: Sequence[Message]
    automation: Automation = field(default_factory=Automation)
    judge: Judge | None = None
    step: StepTool = LONG_TOOL

    @property
    def here(self) -> Position | None:
        return self.machine.position(self.configuration)


def known_values(here: Position) -> dict[str, JSON]:
    """The values a frame can use. A parameter is looked up in the frame alone: the process
    may know another value under the same name."""
    parameters = here.layout.function.parameters
    known = {name: value for name, value in here.process.known.items() if name not in parameters}
    if here.layout.function.reads_clock and here.configuration.clock:
        known = {**known, "now": here.configuration.clock}
    return {**known, **here.frame.locals}
