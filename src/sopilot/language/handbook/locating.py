"""Where a procedure's requirement stands in the text, for what is only found out later."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sopilot.language.diagnostics import Place
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.yaml_nodes import parse_nodes


def locate_requirement(text: str, source: str, procedure: str, predicate: str = "") -> Place:
    """The place where ``procedure`` first names ``predicate``, else that of the procedure.

    A text that is not YAML has no such place: then only the source and the path are known.
    """
    found = _value(_value(parse_nodes(text, DiagnosticCollector(source)), "procedures"), procedure)
    if found is None:
        return Place(source, path=f"procedures.{procedure}")
    named = re.compile(rf"\b{re.escape(predicate)}\b")
    for scalar in _scalars(_value(found, "requires")):
        match = named.search(scalar.text) if predicate else None
        if match:
            column = scalar.column + len(scalar.style) + (match.start() if scalar.one_line else 0)
            return Place(source, scalar.line, column)
    return Place(source, found.line, found.column)


def locate_input(text: str, source: str, action: str, name: str) -> Place:
    """The place of an action's input."""
    root = parse_nodes(text, DiagnosticCollector(source))
    inputs = _value(_value(_value(root, "actions"), action), "input")
    for key, _ in inputs.pairs if isinstance(inputs, MapNode) else ():
        if key.text == name:
            return Place(source, key.line, key.column)
    return Place(source, path=f"actions.{action}.input.{name}")


def _value(node: Node | None, key: str) -> Node | None:
    if not isinstance(node, MapNode):
        return None
    return next((value for name, value in node.pairs if name.text == key), None)


def _scalars(node: Node | None) -> Iterator[ScalarNode]:
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, MapNode):
        for name, value in node.pairs:
            yield name
            yield from _scalars(value)
