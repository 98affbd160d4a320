"""Procedures: the goal, names of their own, computed arguments, requirements; and the
requirements that have a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sopilot.handbook import fields
from sopilot.handbook.expressions import free_names, read_expression
from sopilot.handbook.field_tables import COMPUTED, PROCEDURE, keys, read_plain
from sopilot.handbook.fields import Field, Fields
from sopilot.handbook.grammar import NOW, VERDICT_NAMES
from sopilot.handbook.model import Computed, Procedure
from sopilot.handbook.nodes import Node, ScalarNode
from sopilot.handbook.read_actions import read_inputs
from sopilot.handbook.read_calls import (
    NamedRequirement,
    Scope,
    Signatures,
    bind,
    read_call,
    read_signature,
)
from sopilot.handbook.read_predicates import verified_by
from sopilot.handbook.read_requirements import read_requirement
from sopilot.handbook.requirements import Binding, Name, Term, Tree, substitute


def read_named_requirement(entry: Field, signatures: Signatures) -> None:
    """``eligible(user): tree``; it may use those that stand above it."""
    (key, value), report = entry, signatures.report
    signature = read_signature(report, key, "a requirement")
    if signature is None:
        return
    name, parameters = signature.name, tuple(signature.parameters)
    if name in signatures.predicates or name in signatures.requirements:
        message = f"`{name}` is already declared"
        report.error("duplicate-requirement", message, key, "give one of them another name")
        return
    scope = Scope(signatures, f"the requirement `{name}`", frozenset(parameters))
    tree = read_requirement(value, scope)
    signatures.requirements[name] = NamedRequirement(parameters, tree)


def read_procedure(entry: Field, signatures: Signatures) -> Procedure | None:
    report = signatures.report
    name = fields.identifier(report, entry.key, "a procedure")
    what = f"the procedure `{entry.key.text}`"
    result: Fields = {}
    if not (isinstance(entry.value, ScalarNode) and entry.value.value is None):
        result = fields.fields(report, entry.value, keys(PROCEDURE), what)
    goal: tuple[str, Binding] | None
    if "action" in result:
        goal = _goal(result["action"].value, signatures, what)
    elif entry.key.text in signatures.actions:
        goal = (entry.key.text, ())
    else:
        goal = None
        if name is not None:
            help = "declare the action, or name another one with `action:`"
            fields.unknown(report, entry.key, "action", name, signatures.actions, help)
    # Without a goal action no name is known to be wrong, so none is reported.
    names = frozenset(signatures.actions[goal[0]]) if goal else frozenset()
    terms: dict[str, Term] = {}
    if goal:
        new = {term.name for _, term in goal[1] if isinstance(term, Name)}
        names |= new
        # An input that is fixed, or called by another name, is that wherever it is named.
        terms = {item: term for item, term in goal[1] if item not in new}
    inputs = read_inputs(report, result, "inputs", what)
    for item in inputs:
        if item.name in names:
            message = f"`{item.name}` is already an input of the action"
            report.error("two-meanings", message, result["inputs"].key, f"drop it from {what}")
    names |= {item.name for item in inputs}
    scope = Scope(signatures, what, names, open=goal is None)

    def tree(key: str) -> Tree:
        return substitute(read_requirement(result[key].value, scope), terms)

    special: dict[str, Callable[[], object]] = {
        "action": lambda: goal[0] if goal else "",
        "inputs": lambda: inputs,
        "arguments": lambda: _computed(result["arguments"], scope),
        "requires": lambda: tree("requires"),
        "worded": lambda: tree("worded"),
    }
    read = read_plain(report, result, PROCEDURE, special)
    if "confirm" in result:
        shown = signatures.actions.get(goal[0], ()) if goal else names
        node, known = result["confirm"].value, {*shown, *signatures.constants}
        problem = "neither an input of the action nor a handbook parameter"
        fields.unbound_placeholders(report, node, read["confirm"] or "", known, problem)
    if goal is None or name is None:
        return None
    return Procedure(name, **{**read, "action": goal[0], "arguments": goal[1]})


def _computed(field: Field, scope: Scope) -> tuple[Computed, ...]:
    """``arguments``: values that the machine computes from the procedure's names or a recipe."""
    report = scope.report
    computeds: list[Computed] = []
    entries = fields.entries(report, field.value, "`arguments`")
    later = {key.text for key, _ in entries}
    for key, value in entries:
        later.discard(key.text)
        if key.text not in scope.names:
            message = f"`{key.text}` isn't an input of the action, so nothing takes its value"
            report.error("unknown-argument", message, key)
            continue
        known = scope.names - later - {key.text}
        inner = replace(scope, names=known, answers=True, open=True)
        item = _computed_argument(key, value, inner)
        if item is not None:
            computeds.append(item)
    return tuple(computeds)


def _computed_argument(key: ScalarNode, node: Node, scope: Scope) -> Computed | None:
    report = scope.report
    seen = scope.names | scope.constants.keys() | {NOW}
    if isinstance(node, ScalarNode):
        if not isinstance(node.value, str):
            return Computed(key.text, node.text)
        value = read_expression(report, node, seen, "value")
        uses = free_names(value) & scope.names if value else frozenset()
        return Computed(key.text, value, (), tuple(sorted(uses))) if value else None
    result = fields.fields(report, node, keys(COMPUTED), f"the argument `{key.text}`")
    if "value" not in result or "verify" not in result:
        message = f"the argument `{key.text}` needs `value` and `verify`"
        help = f"where no call is needed, write the expression alone: `{key.text}: …`"
        report.error("missing-key", message, node, help)
        return None
    value = read_expression(report, result["value"].value, seen | VERDICT_NAMES, "value")
    what = f"the recipe of `{key.text}`"
    recipes = verified_by(scope, result["verify"], what, scope.names, ())
    if value is None:
        return None
    passed = {
        term.name
        for recipe in recipes
        for call in recipe
        for _, term in call.arguments
        if isinstance(term, Name)
    }
    uses = (free_names(value) | passed) & scope.names
    return Computed(key.text, value, recipes, tuple(sorted(uses)))


def _goal(node: Node, signatures: Signatures, what: str) -> tuple[str, Binding] | None:
    """``action: name(...)``: arguments fix inputs, or call them by another name."""
    report = signatures.report
    call = read_call(report, node, "`action`", "transfer(to=username)")
    if call is None:
        return None
    inputs = signatures.actions.get(call.name)
    if inputs is None:
        fields.unknown(report, node, "action", call.name, signatures.actions)
        return None
    scope = Scope(signatures, what, frozenset(inputs), open=True)
    return call.name, bind(node, call, inputs, scope, complete=False)
