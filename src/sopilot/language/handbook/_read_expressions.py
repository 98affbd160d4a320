"""Expressions: verdicts, conditions and the values of computed arguments."""

from __future__ import annotations

import re

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.handbook import fields
from sopilot.language.handbook._functions import FUNCTIONS
from sopilot.language.handbook._read_calls import call_offset
from sopilot.language.handbook.cel import free_names, parse_verdict
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.nodes import Node, ScalarNode, Spot

_FOREIGN = re.compile(r"\b(and|or|not)\b|(?<![=!<>])=(?!=)")
_UNKNOWN = re.compile(r"unknown function `(\w+)`")
_MACROS = ("all", "exists", "filter", "has", "map", "size", "startsWith")
"""Of CEL's own, those that authors look for."""


def read_expression(
    report: DiagnosticCollector, node: Node, known: frozenset[str] | set[str], what: str
) -> str | None:
    """A verdict, or the value of a computed argument."""
    text = fields.text(report, node, f"`{what}`")
    if not text or not isinstance(node, ScalarNode):
        return None
    problems = parse_verdict(text, truth=what != "value")
    for problem in problems:
        help = "CEL writes `&&`, `||`, `!` and `==`" if _FOREIGN.search(text) else ""
        if unknown := _UNKNOWN.match(problem.message):
            help = did_you_mean(unknown[1], {*FUNCTIONS, *_MACROS})
        at = Spot(node.line, node.column)
        if node.one_line and problem.line == 1:
            at = Spot(node.line, node.column + call_offset(node, problem.column - 1))
        report.error(
            "bad-verdict" if what == "verdict" else "bad-formula",
            f"the {what} does not work: {problem.message}",
            at,
            help,
        )
    for name in sorted(free_names(text) - known):
        message = f"the {what} reads `{name}`, which is not known there"
        report.error(
            "unknown-verdict-name" if what == "verdict" else "unknown-name",
            message,
            node,
            did_you_mean(name, known),
        )
    return text
