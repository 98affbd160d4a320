"""The official content re-syntaxed as code: only the format differs, every leaf is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sopilot.language.handbook import (
    All,
    AnyOf,
    First,
    Handbook,
    InOrder,
    Leaf,
    Procedure,
    Tree,
    otherwise_of,
    without_otherwise,
)
from sopilot.language.render._official import Required, is_empty, worded_requirements
from sopilot.language.render._quoted import Rendered, Writer
from sopilot.language.render._scaffold import words

_BLOCKS: dict[type, str] = {
    All: "code_all",
    AnyOf: "code_any",
    InOrder: "code_in_order",
    First: "code_first",
}
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
            _write(writer, iter(each.sentences), each.tree, each.action, language, _INDENT)
    return writer.finish()


def _write(
    writer: Writer,
    said: Iterator[str],
    tree: Tree,
    action: str,
    language: str,
    indent: str,
) -> None:
    table = words(language)
    writer.write(indent)
    if isinstance(tree, Leaf):
        writer.write(table["code_check"])
        writer.quote(next(said), action)
        writer.line()
        return
    if otherwise := otherwise_of(tree):
        writer.line("# " + table["official_otherwise"].format(told=otherwise))
        _write(writer, said, without_otherwise(tree), action, language, indent)
        return
    writer.line(table[_BLOCKS[type(tree)]])
    for child in tree.children:
        _write(writer, said, child, action, language, indent + _INDENT)
    if not tree.children:
        writer.line(indent + _INDENT + table["code_none"])
