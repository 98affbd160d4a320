"""Nodes as plain JSON values, for the parts of a handbook that are JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sopilot.language.handbook import fields
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.nodes import ListNode, Node, ScalarNode

if TYPE_CHECKING:
    JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
    """A JSON value: null, boolean, number, string, list, object."""
else:
    # Libraries that read annotations as they run cannot follow an alias that names itself.
    JSON = Any


def json_value(report: DiagnosticCollector, node: Node, what: str) -> JSON:
    """Depth is bounded by the parser, so recursion is safe."""
    if isinstance(node, ScalarNode):
        return fields.constant(report, node, what)
    if isinstance(node, ListNode):
        return [json_value(report, item, what) for item in node.items]
    for key, value in node.pairs:
        if isinstance(value, ScalarNode) and value.value is None and not value.text:
            message = f"`{key.text}` has no value"
            help = (
                "inside braces a text with a comma needs quotes; `null` says that nothing is meant"
            )
            report.warning("empty-value", message, key, help)
    return {key.text: json_value(report, value, what) for key, value in node.pairs}
