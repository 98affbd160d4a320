"""The whole program as pseudo-code: the process, then groups, gates and rules."""

from __future__ import annotations

from sopilot.program import Function, Kind, Program
from sopilot.render.frame import write_function
from sopilot.render.quoted import Rendered, Writer
from sopilot.render.scaffold import words


def render_flat(program: Program, language: str = "en") -> Rendered:
    writer = Writer()
    writer.line(words(language)["flat_intro"])
    for function in reading_order(program):
        writer.line()
        write_function(writer, function, program, language)
    return writer.finish()


def reading_order(program: Program) -> list[Function]:
    """Functions as a reader meets them: by kind, each kind in the program's order."""
    order = list(Kind)
    return sorted(program.functions.values(), key=lambda function: order.index(function.kind))
