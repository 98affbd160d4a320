"""The whole program as pseudo-code: the process, then groups, gates and rules."""

from __future__ import annotations

from sopilot.program import Function, Kind, Program
from sopilot.render.frame import rendered_function
from sopilot.render.quoted import Rendered, Writer
from sopilot.render.scaffold import words

_ORDER = {kind: position for position, kind in enumerate(Kind)}


def render_flat(program: Program, language: str = "en") -> Rendered:
    writer = Writer()
    writer.line(words(language)["flat_intro"])
    for function in reading_order(program):
        writer.line()
        writer.include(rendered_function(function, program, language))
    return writer.finish()


def reading_order(program: Program) -> list[Function]:
    """Functions as a reader meets them: by kind, each kind in the program's order."""
    return sorted(program.functions.values(), key=lambda function: _ORDER[function.kind])
