"""Recipes: calls, ``all`` of them, ``any`` of them, as a list of alternatives."""

from __future__ import annotations

from itertools import product

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.handbook._expressions import ExpressionError, parse_each
from sopilot.language.handbook._model import ActionCall, Recipe
from sopilot.language.handbook._read_calls import Scope, Signatures, bind_call, read_call
from sopilot.language.handbook._tables import CALL_IN_RECIPE, keys
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import (
    bad_identifier,
    fields,
    missing,
    optional_text,
    text,
    unknown,
    wrong,
)
from sopilot.language.handbook.grammar import RECIPE_OPERATORS, is_identifier
from sopilot.language.handbook.nodes import ListNode, MapNode, Node

MOST_ALTERNATIVES = 64
"""Alternatives multiply under ``all``; beyond this nobody meant it."""


def read_action_call(
    report: DiagnosticCollector, node: Node, what: str, scope: Scope, signatures: Signatures
) -> ActionCall | None:
    call = read_call(report, node, what, "read_balance(username)")
    if call is None:
        return None
    inputs = signatures.actions.get(call.name)
    if inputs is None:
        unknown(report, node, "action", call.name, signatures.actions)
        return None
    return ActionCall(call.name, bind_call(report, node, call, inputs, scope, complete=False))


def read_recipes(
    report: DiagnosticCollector, node: Node, scope: Scope, signatures: Signatures
) -> tuple[Recipe, ...]:
    """The alternatives in source order; empty when a diagnostic was reported."""
    if isinstance(node, ListNode):
        help = "name the operator: `all: [...]` (every call) or `any: [...]` (alternatives)"
        wrong(report, node, "a recipe", "a call or one operator", help)
        return ()
    if not isinstance(node, MapNode):
        call = read_action_call(report, node, "a recipe", scope, signatures)
        return ((call,),) if call else ()
    if any(key.text in keys(CALL_IN_RECIPE) for key, _ in node.pairs):
        call = _described_call(report, node, scope, signatures)
        return ((call,),) if call else ()
    return _operator(report, node, scope, signatures)


def _described_call(
    report: DiagnosticCollector, node: MapNode, scope: Scope, signatures: Signatures
) -> ActionCall | None:
    """``{call: …, name: …, for_each: … as …}``."""
    found = fields(report, node, keys(CALL_IN_RECIPE), "a call of a recipe")
    if "call" not in found:
        missing(report, node, "call", "a call of a recipe")
        return None
    call = read_action_call(report, found["call"].value, "`call`", scope, signatures)
    if call is None:
        return None
    name = optional_text(report, found, "name")
    if name and not is_identifier(name):
        bad_identifier(report, found["name"].value, name, "an answer")
        name = ""
    each, element = None, ""
    if "for_each" in found:
        where = found["for_each"].value
        written = text(report, where, "`for_each`")
        if not written:
            return None
        try:
            each, element = parse_each(written)
        except ExpressionError as error:
            report.error("bad-expression", error.message, where, error.help)
            return None
    return ActionCall(call.action, call.arguments, name, each, element)


def _operator(
    report: DiagnosticCollector, node: MapNode, scope: Scope, signatures: Signatures
) -> tuple[Recipe, ...]:
    for key, _ in node.pairs:
        if key.text not in RECIPE_OPERATORS:
            help = did_you_mean(key.text, RECIPE_OPERATORS)
            report.error("unknown-operator", f"a recipe has no operator `{key.text}`", key, help)
            return ()
    if len(node.pairs) != 1:
        message = "a recipe is a call or has exactly one operator, `all` or `any`"
        report.error("two-operators" if node.pairs else "empty-operator", message, node)
        return ()
    ((key, value),) = node.pairs
    if not isinstance(value, ListNode):
        wrong(report, value, f"`{key.text}`", "a list of calls")
        return ()
    if not value.items:
        report.error("empty-operator", f"`{key.text}` has no call", value)
        return ()
    parts = [read_recipes(report, item, scope, signatures) for item in value.items]
    if key.text == "any":
        alternatives = tuple(recipe for part in parts for recipe in part)
        count = len(alternatives)
    else:
        count = 1
        for part in parts:
            count *= len(part)
        alternatives = ()
        if count <= MOST_ALTERNATIVES:
            alternatives = tuple(sum(combined, ()) for combined in product(*parts))
    if count > MOST_ALTERNATIVES:
        message = f"the recipe has {count} alternatives; at most {MOST_ALTERNATIVES} are ranked"
        report.error("too-many-recipes", message, key)
        return ()
    return alternatives
