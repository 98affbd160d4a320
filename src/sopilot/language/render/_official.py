"""The official wording: what each action requires, as a hierarchy of sentences.

Operators are headers, alternatives and free conjunctions have bullets, ordered
ones numbers; every level is indented by two spaces. This is the baseline that a
compiled program is compared with: it keeps neither recipes nor guard closure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sopilot.language.handbook import (
    All,
    AnyOf,
    First,
    Handbook,
    InOrder,
    Leaf,
    Procedure,
    Tree,
    leaves,
    otherwise_of,
    sentence,
    without_otherwise,
)
from sopilot.language.handbook.translated import in_language
from sopilot.language.render._quoted import Rendered, Writer
from sopilot.language.render._scaffold import words

_HEADERS: dict[type, str] = {
    All: "official_all",
    AnyOf: "official_any",
    InOrder: "official_in_order",
    First: "official_first",
}


@dataclass(frozen=True, slots=True)
class Required:
    """What an action requires, and the sentences that say it, leaf by leaf."""

    action: str
    inputs: tuple[str, ...]
    tree: Tree
    sentences: tuple[str, ...]


def worded_requirements(
    handbook: Handbook, procedure: Procedure, language: str = "en"
) -> Iterator[Required]:
    for action, tree in requirements(handbook, procedure):
        said = tuple(in_language(sentence(handbook, leaf), language) for leaf in leaves(tree))
        yield Required(action, handbook.actions[action].input_names(), tree, said)


def requirements(handbook: Handbook, procedure: Procedure) -> Iterator[tuple[str, Tree]]:
    """Action → what the official text says it requires, the goal first.

    An action that other procedures exist for requires what they require; any
    other offered action what it demands by itself.
    """
    yield procedure.action, _worded(procedure)
    goals = {procedure.action}
    for other in handbook.procedures.values():
        if other.action != procedure.action:
            goals.add(other.action)
            yield other.action, _worded(other)
    for action in handbook.actions.values():
        if action.name not in goals and action.offered:
            yield action.name, action.requires


def _worded(procedure: Procedure) -> Tree:
    return procedure.requires if procedure.worded is None else procedure.worded


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
        writer.write(f"\n{indent}" + table["official_otherwise"].format(told=otherwise))
        return
    writer.write(table[_HEADERS[type(tree)]])
    for number, child in enumerate(tree.children, 1):
        sign = f"{number}." if isinstance(tree, InOrder | First) else "•"
        writer.write(f"\n{indent}{sign} ")
        _write(writer, handbook, child, action, language, indent + "  ")
