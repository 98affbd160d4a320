"""The official text, unmodified, with every recipe appended."""

from __future__ import annotations

from collections.abc import Mapping

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
    table = words(language)
    lines = [table["recipes_title"]]
    for name in _mentioned(handbook, procedure):
        predicate = handbook.predicates[name]
        lines += ["", *_predicate(handbook, predicate, language)]
    return Rendered(official.text + "\n" + "\n".join(lines) + "\n", official.quotes)


def _mentioned(handbook: Handbook, procedure: Procedure) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for _, tree in requirements(handbook, procedure):
        names |= dict.fromkeys(leaf.predicate for leaf in leaves(tree))
    return tuple(names)


def _predicate(handbook: Handbook, predicate: Predicate, language: str) -> list[str]:
    table = words(language)
    names = named({name: name for name in predicate.parameters})
    says = fill(predicate.says, {**handbook.parameters, **names})
    lines = [f"* {in_language(says, language)}"]
    if predicate.established_by is not None:
        call = _call(predicate.established_by, predicate, table)
        return [*lines, table["recipe_gate"].format(calls=call)]
    if predicate.tool_free:
        return [*lines, table["recipe_arguments"]]
    for number, recipe in enumerate(predicate.recipes):
        key = "recipe_or" if number else "recipe_calls"
        lines.append(table[key].format(calls=_recipe(recipe, predicate, table)))
    return lines if predicate.recipes else [*lines, table["recipe_none"]]


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
