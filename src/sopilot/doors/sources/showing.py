"""A source in the form that a model would see it in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sopilot.adapters.text_files import is_program_file, load_program
from sopilot.doors.sources._source import compile_source
from sopilot.language.diagnostics import Place, UserMistake, did_you_mean, mistake
from sopilot.language.handbook import Handbook, Procedure
from sopilot.language.program import Program, print_program
from sopilot.language.render import (
    RENDERINGS,
    Correspondence,
    correspondence,
    render,
    render_function,
)

FORMS = ("frame", "listing", *RENDERINGS)
Shown = str | dict[str, str]

OF_PROGRAMS = ("frame", "listing", "flat", "prose", "first-frame")
"""Forms that need no more than the program; the others word the handbook's own trees."""


def shown(
    source: str,
    form: str,
    *,
    goal: str | None = None,
    function: str | None = None,
    language: str = "en",
    tools: str | None = None,
) -> dict[str, Shown]:
    """Every procedure in this form, by its label; of frames one text a function."""
    if form not in FORMS:
        raise UserMistake(f"--as: `{form}` is not a form; {did_you_mean(form, FORMS)}")
    if is_program_file(source):
        if form not in OF_PROGRAMS:
            raise needs_handbook(source, form)
        program = load_program(Path(source))
        # These forms take nothing but the names from them.
        handbook = Handbook(program.source.handbook)
        procedure = Procedure(program.entry, program.entry)
        text = _text(form, handbook, procedure, program, function, language)
        return {f"{source}/{program.entry}": text}
    return {
        unit.label: unit.own_text(language)(form)
        or _text(form, unit.handbook, unit.procedure, unit.program, function, language)
        for unit in compile_source(source, tools=tools, goal=goal)
    }


def _text(
    form: str,
    handbook: Handbook,
    procedure: Procedure,
    program: Program,
    function_name: str | None,
    language: str,
) -> Shown:
    if form == "listing":
        return print_program(program)
    if form != "frame":
        return render(form, handbook, procedure, program, language)
    functions = program.functions
    if function_name is not None and function_name not in functions:
        hint = did_you_mean(function_name, functions)
        raise UserMistake(f"--function: `{function_name}` is not a function; {hint}")
    wanted = [function_name] if function_name else list(functions)
    return {name: render_function(functions[name], program, language) for name in wanted}


def needs_handbook(source: str, what: str) -> UserMistake:
    return mistake(
        "program-not-handbook",
        f"`{what}` is about the handbook's own words, and this is a compiled program",
        Place(source),
        f"name the handbook's file, or show the program as {', '.join(OF_PROGRAMS)}",
    )


def correspondences(
    source: str, *, goal: str | None, tools: str | None
) -> dict[str, Correspondence]:
    """Whether every rendering quotes the same sentences, by label."""
    if is_program_file(source):
        raise needs_handbook(source, "--check")
    return {
        unit.label: correspondence(unit.handbook, unit.procedure, unit.program)
        for unit in compile_source(source, tools=tools, goal=goal)
    }


def correspondence_json(found: Mapping[str, Correspondence]) -> dict[str, object]:
    return {
        "sources": len(found),
        "leaves": sum(one.leaves for one in found.values()),
        "mismatches": {
            label: list(map(str, one.mismatches)) for label, one in found.items() if one.mismatches
        },
    }


def correspondence_lines(found: Mapping[str, Correspondence]) -> Iterator[str]:
    broken = {label: one.mismatches for label, one in found.items() if one.mismatches}
    for label, mismatches in broken.items():
        yield f"{label}: {len(mismatches)} sentences differ: {mismatches[0]}"
    yield (
        f"{len(found)} procedures, {sum(one.leaves for one in found.values())} leaf "
        f"correspondences checked, {sum(map(len, broken.values()))} mismatches"
    )
