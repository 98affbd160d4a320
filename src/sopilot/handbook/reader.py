"""YAML text → handbook, with every mistake found in one go.

The order of the passes: names of parameters, inputs of actions and
declarations of predicates first, so that every later call can be bound and
no mistake in one place hides those in another.
"""

from __future__ import annotations

import re
from typing import Any

from sopilot.handbook import fields
from sopilot.handbook.consistency import check_handbook
from sopilot.handbook.field_tables import SECTIONS
from sopilot.handbook.fields import Field, Fields
from sopilot.handbook.grammar import HANDBOOK_NAME, VERDICT_NAMES
from sopilot.handbook.model import (
    Handbook,
    Input,
    Procedure,
    computed_name,
    confirmed_name,
)
from sopilot.handbook.nodes import MapNode, Node, ScalarNode, Spot
from sopilot.handbook.read_actions import read_action, read_action_fields
from sopilot.handbook.read_calls import Signatures
from sopilot.handbook.read_predicates import declare, read_predicate
from sopilot.handbook.read_procedures import read_named_requirement, read_procedure
from sopilot.handbook.yaml import json_value, parse_nodes, spot_of
from sopilot.messages.diagnostic import Diagnostic, DiagnosticCollector
from sopilot.messages.errors import UserMistake


def read_handbook(
    text: str | bytes, source: str = "<input>"
) -> tuple[Handbook | None, list[Diagnostic]]:
    """The handbook, or ``None`` when a diagnostic is an error; warnings come with a handbook."""
    report = DiagnosticCollector(source)
    decoded = _decode(report, text) if isinstance(text, bytes) else text
    root = parse_nodes(decoded, report) if decoded is not None else None
    handbook = _handbook(report, root) if root is not None else None
    return (None if report.failed else handbook), report.diagnostics()


def _decode(report: DiagnosticCollector, data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        message = f"the byte {data[error.start]:#04x} is not valid UTF-8"
        report.error("not-utf8", message, spot_of(before, len(before)))
        return None


def load_handbook(text: str | bytes, source: str = "<input>") -> Handbook:
    """The handbook, or ``UserMistake`` with every diagnostic."""
    handbook, diagnostics = read_handbook(text, source)
    if handbook is None:
        raise UserMistake(diagnostics)
    return handbook


def _handbook(report: DiagnosticCollector, root: Node) -> Handbook | None:
    result = fields.fields(report, root, SECTIONS, "a handbook")
    if not isinstance(root, MapNode):
        return None
    name = _name(report, root, result)
    says = fields.worded(report, result["says"].value, "`says`") if "says" in result else ""
    constants = _parameters(report, result)
    signatures = Signatures(report, constants)
    inputs: dict[str, tuple[Field, tuple[Input, ...], Fields]] = {}
    for entry in _section(report, result, "actions"):
        action_name = fields.identifier(report, entry.key, "an action")
        if action_name is not None:
            read, body = read_action_fields(report, entry)
            inputs[action_name] = (entry, read, body)
            signatures.actions[action_name] = tuple(item.name for item in read)
    declared: dict[str, Field] = {}
    for entry in _section(report, result, "predicates"):
        signature = declare(report, entry.key, declared)
        if signature is not None:
            declared[signature.name] = entry
            signatures.predicates[signature.name] = tuple(signature.parameters)
        else:
            signatures.broken.add(re.split(r"[^A-Za-z0-9_]", entry.key.text.strip(), maxsplit=1)[0])
    for entry in _section(report, result, "requirements"):
        read_named_requirement(entry, signatures)
    actions = {
        action_name: read_action(action_name, read, body, signatures)
        for action_name, (_, read, body) in inputs.items()
    }
    predicates = {
        predicate: read_predicate(predicate, entry, signatures)
        for predicate, entry in declared.items()
    }
    procedures: dict[str, Procedure] = {}
    goals: dict[str, ScalarNode] = {}
    for entry in _section(report, result, "procedures"):
        goal = read_procedure(entry, signatures)
        if goal is not None:
            procedures[goal.name] = goal
            goals[goal.name] = entry.key
    handbook = Handbook(name, says, constants, actions, predicates, procedures)
    places = {item: entry.key for item, entry in declared.items()}
    for procedure in procedures.values():
        made = [computed_name(procedure, item) for item in procedure.computed]
        places |= dict.fromkeys([*made, confirmed_name(procedure)], goals[procedure.name])
    check_handbook(
        report, handbook, places, {item: entry.key for item, (entry, _, _) in inputs.items()}, root
    )
    return handbook


def _section(report: DiagnosticCollector, result: Fields, key: str) -> list[Field]:
    """The pairs of a section; an empty one is a section that is not there."""
    if key not in result:
        return []
    value = result[key].value
    if isinstance(value, ScalarNode) and value.value is None:
        return []
    return fields.entries(report, value, f"`{key}`")


def _name(report: DiagnosticCollector, root: MapNode, result: Fields) -> str:
    if "handbook" not in result:
        fields.missing(report, Spot(root.line, root.column), "handbook", "a handbook")
        return ""
    node = result["handbook"].value
    name = fields.text(report, node, "the handbook's name")
    if name and not re.fullmatch(HANDBOOK_NAME, name):
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        help = f"for example `{near}`" if re.fullmatch(HANDBOOK_NAME, near) else ""
        message = f"`{name}` cannot name a handbook: lower-case letters, digits and hyphens"
        report.error("bad-identifier", message, node, help)
    elif not name and isinstance(node, ScalarNode) and node.style:
        report.error("bad-identifier", "the handbook's name is empty", node)
    return name


def _parameters(report: DiagnosticCollector, result: Fields) -> dict[str, Any]:
    constants: dict[str, Any] = {}
    for key, value in _section(report, result, "parameters"):
        name = fields.identifier(report, key, "a parameter")
        if name is not None and name in VERDICT_NAMES:
            fields.reserved(report, key, name, "no parameter can have this name")
        elif name is not None:
            what = f"the parameter `{name}`"
            is_table = not isinstance(value, ScalarNode)
            read = json_value if is_table else fields.constant
            constants[name] = read(report, value, what)
    return constants
