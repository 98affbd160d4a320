"""The whole program as pseudo-code: the process, then groups, gates and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.language.program import Function, Kind, Program
from sopilot.language.render._quoted import Rendered, Writer
from sopilot.language.render._scaffold import words
from sopilot.language.render.frame import rendered_function

_ORDER = {kind: position for position, kind in enumerate(Kind)}


_KEPT_AT_MOST: Final = 1_024
_kept: dict[tuple[object, ...], tuple[Mapping[str, Function], Rendered]] = {}


def render_flat(program: Program, language: str = "en") -> Rendered:
    """Kept by the identity of the program's functions (the entry holds them alive): a
    resident text is asked for with every request."""
    key = (id(program.functions), language, str(program.constants))
    kept = _kept.get(key)
    if kept is None:
        if len(_kept) >= _KEPT_AT_MOST:
            _kept.clear()
        kept = _kept[key] = (program.functions, _rendered(program, language))
    return kept[1]


def _rendered(program: Program, language: str) -> Rendered:
    writer = Writer()
    writer.line(words(language)["flat_intro"])
    for function in reading_order(program):
        writer.write("\n")
        writer.include(rendered_function(function, program, language))
    return writer.finish()


def reading_order(program: Program) -> list[Function]:
    """Functions as a reader meets them: by kind, each kind in the program's order."""
    return sorted(program.functions.values(), key=lambda function: _ORDER[function.kind])
