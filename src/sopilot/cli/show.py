"""``sopilot show``: the text a model would see."""

from __future__ import annotations

import click

from sopilot.cli.output import give, heading, json_option, print_json, say, tell
from sopilot.runner.explain import (
    FORMS,
    OF_PROGRAMS,
    correspondence_json,
    correspondence_lines,
    correspondences,
    explain,
    explanation_lines,
    shown,
)
from sopilot.runner.sources import SOURCE_HELP, TOOL_LISTS, compile_source

EXPLANATION = "explanation"
"""Why each check is there, which recipe won, what was factored."""


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
    help=f"One of: {', '.join((*FORMS, EXPLANATION))}.",
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
        result = correspondences(source, goal=goal, tools=tools)
        give(as_json, correspondence_json(result), correspondence_lines(result))
        raise SystemExit(1 if any(item.mismatches for item in result.values()) else 0)
    if form == EXPLANATION:
        explained = {
            unit.label: explain(unit) for unit in compile_source(source, tools=tools, goal=goal)
        }
        if as_json:
            print_json(explained)
            return
        for label, why in explained.items():
            heading(label)
            tell(explanation_lines(why))
            say()
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
