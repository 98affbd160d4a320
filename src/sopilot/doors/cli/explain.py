"""``sopilot explain``: why a program looks as it does."""

from __future__ import annotations

from typing import Any

import click

from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.sources import SOURCE_HELP, TOOL_LISTS, compile_source
from sopilot.doors.sources.explaining import explain


@click.command(
    help="Why is this guard here, which recipe won, which frames were factored?\n\n" + SOURCE_HELP
)
@click.argument("source")
@click.option("--goal", help="Only this procedure.")
@click.option("--tools", type=click.Choice(TOOL_LISTS), help="Which tool list is offered.")
@json_option
def command(source: str, goal: str | None, tools: str | None, as_json: bool) -> None:
    units = compile_source(source, tools=tools, goal=goal)
    explained = {unit.label: explain(unit) for unit in units}
    if as_json:
        print_json(explained)
        return
    for label, why in explained.items():
        heading(label)
        _print(why)
        say()


def _print(why: dict[str, Any]) -> None:
    say("  guards")
    for guard in why["guards"]:
        place = "put in front" if guard["hoisted"] else "already in the tree"
        say(f"    {guard['gate']}  ({place})\n      {guard['because']}")
    if not why["guards"]:
        say("    none: no verifier needs a gate")
    say("  recipes")
    for recipe in why["recipes"]:
        say(f"    {recipe['predicate']}: {recipe['chosen']}\n      {recipe['because']}")
        for fallback in recipe["fallbacks"]:
            say(f"      or: {fallback}")
    if not why["recipes"]:
        say("    none: every predicate is a gate or needs no tool")
    say("  frames")
    for frame in why["frames"]:
        because = f"  ({frame['because']})" if frame["because"] else ""
        steps = "1 step" if frame["steps"] == 1 else f"{frame['steps']} steps"
        say(f"    {frame['kind']:8} {frame['function']}, {steps}{because}")
        if frame["true_if"]:
            say(f"             true if {frame['true_if']}")
    if why["notes"]:
        say("  notes")
        for note in why["notes"]:
            say(f"    {note}")
