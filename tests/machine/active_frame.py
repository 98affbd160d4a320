"""The active frame of a configuration as a model would see it: a function of it alone."""

from __future__ import annotations

from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.views.frame import render_frame


def active_frame(machine: Machine, configuration: Configuration) -> str:
    here = machine.position(configuration)
    if here is None:
        return ""
    known = {
        name: value
        for name, value in here.process.known.items()
        if name not in here.layout.parameters
    }
    frame = here.frame
    return render_frame(
        here.source, frame.function, frame.cursor, frame.slots, {**known, **frame.locals}
    )
