"""The official wording: what each action requires, as a hierarchy of sentences.

Operators are headers; alternatives and free conjunctions have bullets, ordered ones numbers. The
baseline for compiled programs: it has neither recipes nor guard closure. Two variants append the
recipes, or write the same leaves as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import ActionCall, Handbook, Predicate, Procedure, Recipe
from sopilot.handbook.requirements import (
    OPERATORS,
    First,
    InOrder,
    Leaf,
    Name,
    Path,
    Tree,
    leaves,
    otherwise_of,
    without_otherwise,
)
from sopilot.handbook.wording import fill, named, sentence
from sopilot.messages.scaffold import words
from sopilot.values.text import quote_literal
from sopilot.views.quoting import Rendered, Writer


@dataclass(frozen=True, slots=True)
class Required:
    """The requirements of an action, and their sentences, leaf by leaf."""

    action: str
    inputs: tuple[str, ...]
    tree: Tree
    sentences: tuple[str, ...]


def worded_requirements(
    handbook: Handbook, procedure: Procedure, language: str = "en"
) -> Iterator[Required]:
    for action, tree in requirements(handbook, procedure):
        reply = tuple(in_language(sentence(handbook, leaf), language) for leaf in leaves(tree))
        yield Required(action, handbook.actions[action].input_names(), tree, reply)


def requirements(handbook: Handbook, procedure: Procedure) -> Iterator[tuple[str, Tree]]:
    """Action → what the official text says it requires, the goal first.

    An action that other procedures exist for requires what they require; any
    other offered action what it demands by itself.
    """
    others = [item for item in handbook.procedures.values() if item.action != procedure.action]
    for item in (procedure, *others):
        yield item.action, item.requires if item.worded is None else item.worded
    goals = {procedure.action, *(item.action for item in others)}
    for action in handbook.actions.values():
        if action.name not in goals and action.offered:
            yield action.name, action.requires


def is_empty(tree: Tree) -> bool:
    """Nothing is required: no leaf anywhere."""
    return not isinstance(tree, Leaf) and all(map(is_empty, tree.children))


def render_official(handbook: Handbook, procedure: Procedure, language: str = "en") -> Rendered:
    table = words(language)
    writer = Writer()
    writer.line(table["official_intro"])
    writer.line()
    writer.line(table["official_constrained"])
    free: list[str] = []
    for action, tree in requirements(handbook, procedure):
        if is_empty(tree) and action != procedure.action:
            free.append(action)
            continue
        writer.line()
        writer.line(f"* {action}:")
        if is_empty(tree):
            writer.line(table["official_none"])
        else:
            _write(writer, handbook, tree, action, language, "")
            writer.line()
    if free:
        writer.line()
        writer.line(table["official_free"])
        for action in free:
            writer.line(f"* {action}")
    return writer.finish()


def _write(
    writer: Writer,
    handbook: Handbook,
    tree: Tree,
    action: str,
    language: str,
    indent: str,
) -> None:
    """The tree from the current column on; lines below the first start at ``indent``."""
    table = words(language)
    if isinstance(tree, Leaf):
        writer.quote(in_language(sentence(handbook, tree), language), action)
        return
    if otherwise := otherwise_of(tree):
        _write(writer, handbook, without_otherwise(tree), action, language, indent)
        writer.write(f"\n{indent}" + table["official_otherwise"].format(sentence=otherwise))
        return
    writer.write(table[f"official_{OPERATORS[type(tree)]}"])
    for number, child in enumerate(tree.children, 1):
        sign = f"{number}." if isinstance(tree, InOrder | First) else "•"
        writer.write(f"\n{indent}{sign} ")
        _write(writer, handbook, child, action, language, indent + "  ")


_INDENT = "    "


def render_official_code(
    handbook: Handbook, procedure: Procedure, language: str = "en"
) -> Rendered:
    return requirements_as_code(worded_requirements(handbook, procedure, language), language)


def requirements_as_code(requirements: Iterable[Required], language: str = "en") -> Rendered:
    """The same for requirements of any origin, in the order given."""
    table = words(language)
    writer = Writer()
    writer.line(table["code_intro"])
    for each in requirements:
        inputs = ", ".join(each.inputs)
        writer.line()
        writer.line(table["code_action"].format(name=each.action, parameters=inputs))
        if is_empty(each.tree):
            writer.line(_INDENT + table["code_none"])
        else:
            _write_official_code(
                writer, iter(each.sentences), each.tree, each.action, language, _INDENT
            )
    return writer.finish()


def _write_official_code(
    writer: Writer,
    texts: Iterator[str],
    tree: Tree,
    action: str,
    language: str,
    indent: str,
) -> None:
    table = words(language)
    writer.write(indent)
    if isinstance(tree, Leaf):
        writer.write(table["code_check"])
        writer.quote(next(texts), action)
        writer.line()
        return
    if otherwise := otherwise_of(tree):
        writer.line("# " + table["official_otherwise"].format(sentence=otherwise))
        _write_official_code(writer, texts, without_otherwise(tree), action, language, indent)
        return
    writer.line(table[f"code_{OPERATORS[type(tree)]}"])
    for child in tree.children:
        _write_official_code(writer, texts, child, action, language, indent + _INDENT)
    if not tree.children:
        writer.line(indent + _INDENT + table["code_none"])


def render_official_recipes(
    handbook: Handbook, procedure: Procedure, language: str = "en"
) -> Rendered:
    official = render_official(handbook, procedure, language)
    names: dict[str, None] = {}
    for _, tree in requirements(handbook, procedure):
        names |= dict.fromkeys(leaf.predicate for leaf in leaves(tree))
    return Rendered(f"{official.text}\n{list_recipes(handbook, names, language)}", official.quotes)


OFFICIAL: Final[Mapping[str, Callable[[Handbook, Procedure, str], Rendered]]] = {
    "official": render_official,
    "official-code": render_official_code,
    "official-recipes": render_official_recipes,
}


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
