"""Actions: inputs first, for every call needs them; then what depends on predicates."""

from __future__ import annotations

import re

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.handbook import fields
from sopilot.language.handbook._model import Action, Approval, Input
from sopilot.language.handbook._read_calls import Scope, Signatures
from sopilot.language.handbook._read_trees import read_requirement
from sopilot.language.handbook._tree import NOTHING, Scalar
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import Field, Fields
from sopilot.language.handbook.grammar import (
    ACTION_KEYS,
    APPROVAL_KEYS,
    DURATION,
    INPUT_KEYS,
    SECONDS,
    TYPES,
    is_identifier,
)
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.values import json_value


def read_inputs(report: DiagnosticCollector, entry: Field) -> tuple[tuple[Input, ...], Fields]:
    """An action's inputs and its fields."""
    what = f"the action `{entry.key.text}`"
    if isinstance(entry.value, ScalarNode) and entry.value.value is None:
        return (), {}
    found = fields.fields(report, entry.value, ACTION_KEYS, what)
    if "input" not in found:
        return (), found
    inputs: list[Input] = []
    for key, value in fields.entries(report, found["input"].value, f"`input` of {what}"):
        name = fields.identifier(report, key, "an input")
        if name is not None:
            inputs.append(_input(report, name, value))
    return tuple(inputs), found


def _input(report: DiagnosticCollector, name: str, node: Node) -> Input:
    if isinstance(node, ScalarNode):
        return Input(name, _type(report, node))
    found = fields.fields(report, node, INPUT_KEYS, f"the input `{name}`")
    schema = None
    if "schema" in found:
        if isinstance(found["schema"].value, MapNode):
            value = json_value(report, found["schema"].value, "a schema's value")
            schema = value if isinstance(value, dict) else None
        else:
            fields.wrong(report, found["schema"].value, "`schema`", "a mapping (JSON Schema)")
    return Input(
        name,
        _type(report, found["type"].value) if "type" in found else "string",
        fields.wording(report, found, "says"),
        _flag(report, found, "required", default=True),
        schema,
    )


def _type(report: DiagnosticCollector, node: Node) -> str:
    if isinstance(node, ScalarNode) and node.text in TYPES:
        return node.text
    shown = fields.describe(node)
    help = did_you_mean(node.text if isinstance(node, ScalarNode) else "", TYPES)
    report.error("unknown-type", f"there is no input type {shown}", node, help)
    return "string"


def read_action(
    report: DiagnosticCollector,
    name: str,
    inputs: tuple[Input, ...],
    found: Fields,
    signatures: Signatures,
    constants: dict[str, Scalar],
) -> Action:
    names = frozenset(one.name for one in inputs)
    scope = Scope(f"the action `{name}`", names, constants)
    return Action(
        name,
        inputs,
        fields.wording(report, found, "says"),
        read_requirement(report, found["requires"].value, scope, signatures)
        if "requires" in found
        else NOTHING,
        _flag(report, found, "irreversible", default=False),
        _approval(report, found["approval"].value) if "approval" in found else None,
        _flag(report, found, "full_state", default=False),
        _flag(report, found, "offered", default=True),
        _flag(report, found, "read_only", default=False),
        _topics(report, found, "changes"),
        _topics(report, found, "reads"),
        _flag(report, found, "recheck", default=False),
    )


def _topics(report: DiagnosticCollector, found: Fields, key: str) -> tuple[str, ...] | None:
    """Words of the author's; an empty list is said, an absent one is not."""
    if key not in found:
        return None
    node = found[key].value
    topics: list[str] = []
    for item in node.items if isinstance(node, ListNode) else (node,):
        topic = fields.text(report, item, f"a topic of `{key}`")
        if topic and not is_identifier(topic):
            fields.bad_identifier(report, item, topic, "a topic")
        elif topic:
            topics.append(topic)
    return tuple(dict.fromkeys(topics))


def _flag(report: DiagnosticCollector, found: Fields, key: str, *, default: bool) -> bool:
    return fields.flag(report, found[key].value, f"`{key}`", default) if key in found else default


def _approval(report: DiagnosticCollector, node: Node) -> Approval | None:
    if isinstance(node, ScalarNode):
        return Approval(tuple(_roles(report, node)))
    found = fields.fields(report, node, APPROVAL_KEYS, "an approval")
    if "roles" not in found:
        if isinstance(node, MapNode):
            fields.missing(report, node, "roles", "an approval")
        return None
    roles = tuple(_roles(report, found["roles"].value))
    needed = 1
    if "needed" in found:
        value = found["needed"].value
        number = value.value if isinstance(value, ScalarNode) else None
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            fields.wrong(report, value, "`needed`", "a whole number from 1")
        elif roles and number > len(roles):
            can = "1 role" if len(roles) == 1 else f"{len(roles)} roles"
            message = f"{number} approvals are needed, but only {can} can give one"
            help = "name one role for each approval; a role may be named twice"
            report.error("too-few-roles", message, value, help)
        else:
            needed = number
    expires = _seconds(report, found["expires"].value) if "expires" in found else None
    return Approval(roles, needed, expires)


def _roles(report: DiagnosticCollector, node: Node) -> list[str]:
    items = node.items if isinstance(node, ListNode) else (node,)
    if not items:
        report.error("empty-roles", "an approval needs at least one role", node)
    roles: list[str] = []
    for item in items:
        if isinstance(item, ScalarNode) and isinstance(item.value, str):
            if is_identifier(item.text.replace("-", "_")):
                roles.append(item.text)
            else:
                fields.bad_identifier(report, item, item.text, "a role")
        else:
            fields.wrong(report, item, "a role", "a name like `supervisor`")
    return roles


def _seconds(report: DiagnosticCollector, node: Node) -> int | None:
    if isinstance(node, ScalarNode):
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**10:
            return value
        if isinstance(value, str) and re.fullmatch(DURATION, value):
            return int(value[:-1]) * SECONDS[value[-1]]
    fields.wrong(report, node, "`expires`", "a time like `90s`, `30m`, `1h` or `2d`")
    return None
