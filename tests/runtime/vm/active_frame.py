"""The active frame of a configuration as a model would see it: a function of it alone."""

from __future__ import annotations

from sopilot.language.render import render_frame
from sopilot.runtime.vm import Configuration, Machine


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
