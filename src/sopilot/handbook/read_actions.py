"""Actions: first the inputs, which every call needs; then the fields that need predicates."""

from __future__ import annotations

from sopilot.handbook import fields
from sopilot.handbook.expressions import read_expression
from sopilot.handbook.field_tables import ACTION, APPROVAL, INPUT, ROLES, TYPE, keys, read_plain
from sopilot.handbook.fields import Field, Fields
from sopilot.handbook.grammar import NOW
from sopilot.handbook.model import Action, Approval, Input
from sopilot.handbook.nodes import MapNode, Node, ScalarNode
from sopilot.handbook.read_calls import Scope, Signatures
from sopilot.handbook.read_requirements import read_requirement
from sopilot.messages.diagnostic import DiagnosticCollector


def read_action_fields(
    report: DiagnosticCollector, entry: Field
) -> tuple[tuple[Input, ...], Fields]:
    """An action's inputs and its fields."""
    what = f"the action `{entry.key.text}`"
    if isinstance(entry.value, ScalarNode) and entry.value.value is None:
        return (), {}
    result = fields.fields(report, entry.value, keys(ACTION), what)
    return read_inputs(report, result, "input", what), result


def read_inputs(
    report: DiagnosticCollector, result: Fields, key: str, what: str
) -> tuple[Input, ...]:
    inputs: list[Input] = []
    named = fields.entries(report, result[key].value, f"`{key}` of {what}") if key in result else []
    for at, value in named:
        name = fields.identifier(report, at, "an input")
        if name is not None:
            inputs.append(_input(report, name, value))
    return tuple(inputs)


def _input(report: DiagnosticCollector, name: str, node: Node) -> Input:
    if isinstance(node, ScalarNode):
        assert TYPE.read is not None
        return Input(name, TYPE.read(report, node, "`type`"))
    result = fields.fields(report, node, keys(INPUT), f"the input `{name}`")
    return Input(name, **read_plain(report, result, INPUT))


def read_action(
    name: str, inputs: tuple[Input, ...], result: Fields, signatures: Signatures
) -> Action:
    report, names = signatures.report, frozenset(item.name for item in inputs)
    scope = Scope(signatures, f"the action `{name}`", names)
    special = {
        "input": lambda: inputs,
        "requires": lambda: read_requirement(result["requires"].value, scope),
        "approval": lambda: _approval(result["approval"].value, scope),
    }
    action = Action(name, **read_plain(report, result, ACTION, special))
    if action.confirm:
        problem = f"neither an input of `{name}` nor a parameter of the handbook"
        known = names | scope.constants.keys()
        fields.unbound_placeholders(report, result["confirm"].value, action.confirm, known, problem)
    if action.read_only and (action.changes or action.is_guarded):
        otherwise = "that it changes something" if action.changes else "that it is guarded"
        message = f"the action `{name}` is `read_only`, but says {otherwise}"
        report.error("not-read-only", message, result["read_only"].key, "drop one of the two")
    for key in {"not_found", "not_done"} & result.keys():
        answers = {"result"} | scope.constants.keys()
        read_expression(report, result[key].value, answers, "condition")
    if action.not_found is not None and action.is_guarded:
        message = f"`{name}` is guarded: a failure of it is no answer"
        help = "write `not_done` if the failure means that it wasn't carried out"
        report.error("guarded-not-found", message, result["not_found"].key, help)
    return action


def _approval(node: Node, scope: Scope) -> Approval | None:
    report = scope.report
    if isinstance(node, ScalarNode):
        assert ROLES.read is not None
        return Approval(ROLES.read(report, node, "`roles`"))
    result = fields.fields(report, node, keys(APPROVAL), "an approval")
    if "roles" not in result:
        if isinstance(node, MapNode):
            fields.missing(report, node, "roles", "an approval")
        return None
    approval = Approval(**read_plain(report, result, APPROVAL))
    if approval.roles and approval.needed > len(approval.roles):
        count = len(approval.roles)
        can = "1 role" if count == 1 else f"{count} roles"
        message = f"{approval.needed} approvals are needed, but only {can} can approve"
        help = "name one role for each approval; a role may be named twice"
        report.error("too-few-roles", message, result["needed"].value, help)
    if approval.when is not None:
        known = scope.names | scope.constants.keys() | {NOW}
        read_expression(report, result["when"].value, known, "condition")
    return approval
