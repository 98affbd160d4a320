"""What the model is shown of the program: the active frame and nothing else."""

from __future__ import annotations

from sopilot.language.render import render_frame
from sopilot.runtime.vm import Configuration, Machine


def context_slot(machine: Machine, configuration: Configuration, *, language: str = "en") -> str:
    """The text of the top frame; empty without a process. Never longer than the largest
    ``frame_bound`` of the programs.

    A function of the configuration alone, so a slot rebuilt from a store is the
    uninterrupted one.
    """
    here = machine.position(configuration)
    if here is None:
        return ""
    frame = here.frame
    # A parameter is the frame's own: the process may know another value under its name.
    known = {
        name: value
        for name, value in here.process.known.items()
        if name not in here.layout.parameters
    }
    return render_frame(
        here.source,
        frame.function,
        frame.cursor,
        frame.slots,
        {**known, **frame.locals},
        language,
    )
