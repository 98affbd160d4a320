"""``sopilot show``: the text a model would see."""

from __future__ import annotations

import click

from sopilot.adapters.text_files import is_program_file
from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.sources import SOURCE_HELP, TOOL_LISTS, compile_source
from sopilot.doors.sources.showing import FORMS, OF_PROGRAMS, needs_handbook, shown
from sopilot.language.render import correspondence


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
    help=f"One of: {', '.join(FORMS)}.",
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
    if check:
        _prove(source, goal=goal, tools=tools, as_json=as_json)
        return
    texts = shown(source, form, goal=goal, function=function_name, language=language, tools=tools)
    if as_json:
        print_json(texts)
        return
    for label, text in texts.items():
        if len(texts) > 1:
            heading(f"=== {label}")
        if isinstance(text, str):
            say(text.rstrip())
        else:
            say("\n\n".join(frame.rstrip() for frame in text.values()))
        if len(texts) > 1:
            say()


def _prove(source: str, *, goal: str | None, tools: str | None, as_json: bool) -> None:
    if is_program_file(source):
        raise needs_handbook(source, "--check")
    units = compile_source(source, tools=tools, goal=goal)
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
