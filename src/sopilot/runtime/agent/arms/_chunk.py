"""Oracle chunking: the part of the program around the current obligation, at a frame's length.

The machine tells which function is current. Around it the chunk grows through
the call graph, callees first, then the caller and its other callees, as long as
the text stays within the size of the largest frame.
"""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.language.program.model import Check, Function, Program
from sopilot.language.render import render_function
from sopilot.runtime.agent.arms._view import View
from sopilot.runtime.agent.arms.machine_state import no_process, state_slot
from sopilot.runtime.vm import Position


def chunk_slot(view: View) -> str:
    here = view.here
    if here is None:
        return no_process(view)
    budget = view.briefing.largest_frame(here.process.goal)
    return f"{chunk_text(here, budget, view.briefing.language)}\n\n{state_slot(view)}"


def chunk_text(here: Position, budget: int, language: str) -> str:
    program = here.source
    current = here.frame.function
    chosen = {current: render_function(program.functions[current], program, language).rstrip()}
    size = len(chosen[current])
    for name in _around(here):
        if name in chosen:
            continue
        text = render_function(program.functions[name], program, language).rstrip()
        if size + 2 + len(text) > budget:
            break
        chosen[name] = text
        size += 2 + len(text)
    return "\n\n".join(chosen[name] for name in program.functions if name in chosen)


def _around(here: Position) -> Iterator[str]:
    program = here.source
    for frame in reversed(here.process.frames):
        yield frame.function
        yield from _below(program.functions[frame.function], program)


def _below(function: Function, program: Program) -> Iterator[str]:
    for step in function.steps:
        if isinstance(step, Check):
            yield step.function
            yield from _below(program.functions[step.function], program)
