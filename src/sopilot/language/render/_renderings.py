"""The renderings by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sopilot.language.diagnostics import did_you_mean, mistake
from sopilot.language.handbook import Handbook, Procedure
from sopilot.language.program import Program
from sopilot.language.render._flat import render_flat
from sopilot.language.render._official import render_official
from sopilot.language.render._official_code import render_official_code
from sopilot.language.render._official_recipes import render_official_recipes
from sopilot.language.render._prose import render_prose
from sopilot.language.render.frame import render_frame

Rendering = Callable[[Handbook, Procedure, Program, str], str]

RENDERINGS: Final[dict[str, Rendering]] = {
    "flat": lambda handbook, procedure, program, language: render_flat(program, language).text,
    "prose": lambda handbook, procedure, program, language: render_prose(program, language).text,
    "official": lambda handbook, procedure, program, language: (
        render_official(handbook, procedure, language).text
    ),
    "official-code": lambda handbook, procedure, program, language: (
        render_official_code(handbook, procedure, language).text
    ),
    "official-recipes": lambda handbook, procedure, program, language: (
        render_official_recipes(handbook, procedure, language).text
    ),
    "first-frame": lambda handbook, procedure, program, language: render_frame(
        program,
        program.entry,
        program.functions[program.entry].steps[0].label,
        {},
        {},
        language,
    ),
}
"""Name → what a model sees of a procedure before a run starts."""


def render(
    name: str,
    handbook: Handbook,
    procedure: Procedure | str,
    program: Program,
    language: str = "en",
) -> str:
    """The rendering called ``name``."""
    if name not in RENDERINGS:
        raise mistake(
            "unknown-rendering",
            f"there is no rendering `{name}`",
            help=did_you_mean(name, RENDERINGS),
        )
    if isinstance(procedure, str):
        procedure = handbook.procedures[procedure]
    return RENDERINGS[name](handbook, procedure, program, language)
