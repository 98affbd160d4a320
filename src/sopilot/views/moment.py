"""What a view looks at when it fills the slot of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.messages.scaffold import LONG_TOOL, StepTool
from sopilot.protocols import Message
from sopilot.values.json import JSON, Judge
from sopilot.views.briefing import Briefing
from sopilot.views.dialog_folding import exchanges

_RESULT = re.compile(r"#[0-9]+ \((ok|failed)\): ")


@dataclass(frozen=True, slots=True)
class Done:
    """A domain call that was made in this run, in a process or not."""

    action: str
    arguments: Mapping[str, JSON]
    ok: bool


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
    def done(self) -> list[Done]:
        """The domain calls that were answered, for views without a machine; with one, the
        configuration has them."""
        results = []
        for first, *answers in exchanges(self.dialog):
            calls = {call.id: call for call in first.tool_calls}
            for answer in answers:
                result = _RESULT.match(answer.content)
                if result is not None and answer.tool_call_id in calls:
                    arguments = json.loads(calls[answer.tool_call_id].arguments or "{}")
                    results.append(Done(answer.name or "", arguments, result[1] == "ok"))
        return results

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
