"""``sopilot explain``: why a program looks as it does."""

from __future__ import annotations

import click

from sopilot.cli.output import heading, json_option, print_json, say, tell
from sopilot.runner.explain import explain, explanation_lines
from sopilot.runner.sources import SOURCE_HELP, TOOL_LISTS, compile_source


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
        tell(explanation_lines(why))
        say()
