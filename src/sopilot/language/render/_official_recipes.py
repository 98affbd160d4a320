"""The official text, unmodified, with every recipe appended that can be followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sopilot.language.handbook import (
    ActionCall,
    Handbook,
    Name,
    Path,
    Predicate,
    Procedure,
    Recipe,
    leaves,
)
from sopilot.language.handbook.translated import in_language
from sopilot.language.handbook.wording import fill, named
from sopilot.language.render._official import render_official, requirements
from sopilot.language.render._quoted import Rendered
from sopilot.language.render._scaffold import words
from sopilot.language.render.values import quote_literal


def render_official_recipes(
    handbook: Handbook, procedure: Procedure, language: str = "en"
) -> Rendered:
    official = render_official(handbook, procedure, language)
    names: dict[str, None] = {}
    for _, tree in requirements(handbook, procedure):
        names |= dict.fromkeys(leaf.predicate for leaf in leaves(tree))
    return Rendered(f"{official.text}\n{list_recipes(handbook, names, language)}", official.quotes)


def list_recipes(
    handbook: Handbook,
    predicates: Iterable[str],
    language: str = "en",
    *,
    offered: frozenset[str] | None = None,
) -> str:
    """How each of the predicates is verified with the actions that are offered. As in a
    compiled program, of a recipe that is offered in part that part is left."""
    if offered is None:
        offered = frozenset(name for name, each in handbook.actions.items() if each.offered)
    table = words(language)
    lines = [table["recipes_title"]]
    for name in predicates:
        lines += ["", *_predicate(handbook, handbook.predicates[name], offered, language)]
    return "\n".join(lines) + "\n"


def _predicate(
    handbook: Handbook, predicate: Predicate, offered: frozenset[str], language: str
) -> list[str]:
    table = words(language)
    names = named({name: name for name in predicate.parameters})
    says = fill(predicate.says, {**handbook.parameters, **names})
    lines = [f"* {in_language(says, language)}"]
    gate = predicate.established_by
    if gate is not None and gate.action in offered:
        return [*lines, table["recipe_gate"].format(calls=_call(gate, predicate, table))]
    if predicate.tool_free:
        return [*lines, table["recipe_arguments"]]
    usable = dict.fromkeys(
        tuple(call for call in recipe if call.action in offered) for recipe in predicate.recipes
    )
    for number, recipe in enumerate(recipe for recipe in usable if recipe):
        key = "recipe_or" if number else "recipe_calls"
        lines.append(table[key].format(calls=_recipe(recipe, predicate, table)))
    return lines if len(lines) > 1 else [*lines, table["recipe_none"]]


def _recipe(recipe: Recipe, predicate: Predicate, table: Mapping[str, str]) -> str:
    return table["then"].join(_call(call, predicate, table) for call in recipe)


def _call(call: ActionCall, predicate: Predicate, table: Mapping[str, str]) -> str:
    written = []
    for parameter, term in call.arguments:
        if isinstance(term, Name):
            value = term.name if term.name in predicate.parameters else f"?{term.name}"
        elif isinstance(term, Path):
            value = str(term)
        else:
            value = quote_literal(term.value)
        written.append(value if value == parameter else f"{parameter}={value}")
    text = f"{call.action}({', '.join(written)})"
    if call.name:
        text += table["bound_as"].format(slot=call.name)
    if call.each is not None:
        text += table["for_each"].format(element=call.element, where=call.each)
    return text
