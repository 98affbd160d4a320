"""``sopilot show``: the text a model would see."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.adapters.text_files import is_program_file, load_program
from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.sources import (
    SOURCE_HELP,
    TOOL_LISTS,
    Unit,
    compile_source,
)
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.language.handbook import Handbook, Procedure
from sopilot.language.program import Program, print_program
from sopilot.language.render import RENDERINGS, correspondence, render, render_function

Shown = str | dict[str, str]

OF_PROGRAMS = ("frame", "listing", "flat", "prose", "first-frame")
"""Forms that need no more than the program; the others word the handbook's own trees."""


@click.command(
    help=f"Show what a model would see of SOURCE.\n\n{SOURCE_HELP} A program file is shown as "
    f"{', '.join(OF_PROGRAMS)}."
)
@click.argument("source")
@click.option(
    "--as",
    "form",
    default="flat",
    show_default=True,
    metavar="FORM",
    help=f"One of: {', '.join(['frame', 'listing', *RENDERINGS])}.",
)
@click.option("--goal", help="Only this procedure.")
@click.option("--function", "function_name", help="With --as frame: only this function.")
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the scaffold; the SOP's own sentences stay as they are.",
)
@click.option("--tools", type=click.Choice(TOOL_LISTS), help="Which tool list is offered.")
@click.option(
    "--check",
    is_flag=True,
    help="Prove that every rendering quotes the same sentences, byte for byte.",
)
@json_option
def command(
    source: str,
    form: str,
    goal: str | None,
    function_name: str | None,
    language: str,
    tools: str | None,
    check: bool,
    as_json: bool,
) -> None:
    forms = ("frame", "listing", *RENDERINGS)
    if form not in forms:
        raise UserMistake(f"--as: `{form}` is not a form; {did_you_mean(form, forms)}")
    shown: dict[str, Shown]
    if is_program_file(source):
        if check or form not in OF_PROGRAMS:
            raise _needs_handbook(source, "--check" if check else form)
        program = load_program(Path(source))
        # These forms take nothing but the names from them.
        handbook = Handbook(program.source.handbook)
        procedure = Procedure(program.entry, program.entry)
        text = _text(form, handbook, procedure, program, function_name, language)
        shown = {f"{source}/{program.entry}": text}
    else:
        units = compile_source(source, tools=tools, goal=goal)
        if check:
            _prove(units, as_json=as_json)
            return
        shown = {
            unit.label: _text(
                form, unit.handbook, unit.procedure, unit.program, function_name, language
            )
            for unit in units
        }
    if as_json:
        print_json(shown)
        return
    for label, text in shown.items():
        if len(shown) > 1:
            heading(f"=== {label}")
        if isinstance(text, str):
            say(text.rstrip())
        else:
            say("\n\n".join(frame.rstrip() for frame in text.values()))
        if len(shown) > 1:
            say()


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


def _prove(units: list[Unit], *, as_json: bool) -> None:
    results = {
        unit.label: correspondence(unit.handbook, unit.procedure, unit.program) for unit in units
    }
    broken = {label: r.mismatches for label, r in results.items() if r.mismatches}
    leaves = sum(result.leaves for result in results.values())
    if as_json:
        print_json(
            {
                "sources": len(results),
                "leaves": leaves,
                "mismatches": {label: list(map(str, m)) for label, m in broken.items()},
            }
        )
    else:
        for label, mismatches in broken.items():
            say(f"{label}: {len(mismatches)} sentences differ: {mismatches[0]}")
        say(
            f"{len(results)} procedures, {leaves} leaf correspondences checked, "
            f"{sum(map(len, broken.values()))} mismatches"
        )
    if broken:
        raise SystemExit(1)


def _needs_handbook(source: str, what: str) -> UserMistake:
    return UserMistake(
        [
            Diagnostic(
                "program-not-handbook",
                f"`{what}` is about the handbook's own words, and this is a compiled program",
                Place(source),
                f"name the handbook's file, or show the program as {', '.join(OF_PROGRAMS)}",
            )
        ]
    )
