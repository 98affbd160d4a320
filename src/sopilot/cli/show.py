"""``sopilot show``: the text a model would see."""

from __future__ import annotations

import click

from sopilot.cli.output import heading, json_option, print_json, say
from sopilot.cli.sources import SOURCE_HELP, TOOL_LISTS, compile_source
from sopilot.diagnostics import UserMistake, did_you_mean
from sopilot.render import RENDERINGS, correspondence, render, render_function


@click.command(help=f"Show what a model would see of SOURCE.\n\n{SOURCE_HELP}")
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
    from sopilot.program import print_program

    forms = ("frame", "listing", *RENDERINGS)
    if form not in forms:
        raise UserMistake(f"--as: `{form}` is not a form; {did_you_mean(form, forms)}")
    units = compile_source(source, tools=tools, goal=goal)
    if check:
        results = {
            unit.label: correspondence(unit.handbook, unit.procedure, unit.program)
            for unit in units
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
        return
    shown: dict[str, str | dict[str, str]] = {}
    for unit in units:
        if form == "frame":
            functions = unit.program.functions
            if function_name is not None and function_name not in functions:
                hint = did_you_mean(function_name, functions)
                raise UserMistake(f"--function: `{function_name}` is not a function; {hint}")
            wanted = [function_name] if function_name else list(functions)
            shown[unit.label] = {
                name: render_function(functions[name], unit.program, language) for name in wanted
            }
        elif form == "listing":
            shown[unit.label] = print_program(unit.program)
        else:
            shown[unit.label] = render(
                form, unit.handbook, unit.procedure.name, unit.program, language
            )
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
