"""The official content re-syntaxed as code: only the format differs, every leaf is the same."""

from __future__ import annotations

from sopilot.language.handbook import (
    All,
    AnyOf,
    First,
    Handbook,
    InOrder,
    Leaf,
    Procedure,
    Tree,
    sentence,
)
from sopilot.language.handbook.translated import in_language
from sopilot.language.render._official import is_empty, requirements
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
    table = words(language)
    writer = Writer()
    writer.line(table["code_intro"])
    for action, tree in requirements(handbook, procedure):
        inputs = ", ".join(handbook.actions[action].input_names())
        writer.line()
        writer.line(table["code_action"].format(name=action, parameters=inputs))
        if is_empty(tree):
            writer.line(_INDENT + table["code_none"])
        else:
            _write(writer, handbook, tree, action, language, _INDENT)
    return writer.finish()


def _write(
    writer: Writer,
    handbook: Handbook,
    tree: Tree,
    action: str,
    language: str,
    indent: str,
) -> None:
    table = words(language)
    writer.write(indent)
    if isinstance(tree, Leaf):
        writer.write(table["code_check"])
        writer.quote(in_language(sentence(handbook, tree), language), action)
        writer.line()
        return
    writer.line(table[_BLOCKS[type(tree)]])
    for child in tree.children:
        _write(writer, handbook, child, action, language, indent + _INDENT)
    if not tree.children:
        writer.line(indent + _INDENT + table["code_none"])
