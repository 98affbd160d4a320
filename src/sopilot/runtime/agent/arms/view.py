"""What an arm looks at when it fills the slot of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.session.protocols import JSON, Message
from sopilot.runtime.vm import Automation, Configuration, Judge, Machine, Position


@dataclass(frozen=True, slots=True)
class Done:
    """A domain call that was made in this run, in a process or not."""

    action: str
    arguments: Mapping[str, JSON]
    ok: bool


@dataclass(frozen=True, slots=True)
class View:
    """``done`` lists the domain calls of the run for arms without a machine; with one, the
    configuration has them. ``automation`` and ``judge`` are the session's own, for arms that
    look ahead."""

    briefing: Briefing
    machine: Machine
    configuration: Configuration
    dialog: Sequence[Message]
    done: Sequence[Done]
    automation: Automation = field(default_factory=Automation)
    judge: Judge | None = None

    @property
    def here(self) -> Position | None:
        return self.machine.position(self.configuration)


def known_values(here: Position) -> dict[str, JSON]:
    """The values a frame can use. A parameter is looked up in the frame alone: the process
    may know another value under the same name."""
    parameters = here.layout.function.parameters
    known = {name: value for name, value in here.process.known.items() if name not in parameters}
    return {**known, **here.frame.locals}
