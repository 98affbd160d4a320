"""``sopilot explain``: why a program looks as it does."""

from __future__ import annotations

from typing import Any

import click

from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.cli.sources import SOURCE_HELP, TOOL_LISTS, Unit, compile_source
from sopilot.language.handbook import Leaf, Name, Recipe


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


def explain(unit: Unit) -> dict[str, Any]:
    why = unit.explanation
    return {
        "guards": [
            {
                "gate": show_leaf(guard.leaf),
                "hoisted": guard.hoisted,
                "because": f"`{guard.action}` requires it, and {show_leaf(guard.needed_by)} "
                f"{'is opened' if _is_gate(unit, guard.needed_by) else 'is verified'} "
                f"by `{guard.action}`",
            }
            for guard in why.guards
        ],
        "recipes": [
            {
                "predicate": name,
                "chosen": show_recipe(ranked.chosen),
                "because": ranked.because or "no verifier is offered",
                "fallbacks": [show_recipe(recipe) for recipe in ranked.fallbacks],
                "notes": list(ranked.notes),
            }
            for name, ranked in why.recipes.items()
        ],
        "frames": [
            {
                "function": function.name,
                "kind": str(function.kind),
                "steps": len(function.steps),
                "because": next((g.because for g in why.groups if g.name == function.name), ""),
            }
            for function in unit.program.functions.values()
        ],
        "notes": [
            f"{function.name}: {note}"
            for function in unit.program.functions.values()
            for note in function.notes
        ]
        + [
            f"verifier {action} requires {show_leaf(leaf)}, which this procedure does not check"
            for action, leaf in why.unchecked
        ]
        + [
            f"{show_leaf(one.check)} needs {show_leaf(one.gate)}, which "
            + ("is opened only later" if one.later else "an `any` or `first` can leave shut")
            for one in why.unopened
        ],
    }


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
        say(f"    {frame['kind']:8} {frame['function']}, {frame['steps']} steps{because}")
    if why["notes"]:
        say("  notes")
        for note in why["notes"]:
            say(f"    {note}")


def _is_gate(unit: Unit, leaf: Leaf) -> bool:
    return unit.handbook.predicates[leaf.predicate].is_gate


def show_leaf(leaf: Leaf) -> str:
    arguments = ", ".join(
        term.name if isinstance(term, Name) else repr(term.value) for _, term in leaf.arguments
    )
    return f"{'' if leaf.wanted else 'not '}{leaf.predicate}({arguments})"


def show_recipe(recipe: Recipe) -> str:
    return " + ".join(call.action for call in recipe) or "nothing"
