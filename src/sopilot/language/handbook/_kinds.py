"""The kinds of value that a handbook's fields have: each with its JSON Schema, how it is
written as YAML and how it stands in the handbook's JSON form.

What can be read without knowing the rest of the handbook is read here, too; the readers of
trees, calls and recipes need the names that are in scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from sopilot.language.diagnostics import did_you_mean
from sopilot.language.handbook import fields
from sopilot.language.handbook._expressions import write_term
from sopilot.language.handbook._model import ActionCall, Handbook, Recipe
from sopilot.language.handbook._tree import (
    All,
    AnyOf,
    CallBinding,
    First,
    InOrder,
    Leaf,
    Name,
    Origin,
    Path,
    Tree,
    otherwise_of,
    without_otherwise,
)
from sopilot.language.handbook._yaml_text import Value, flow, scalar
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.grammar import (
    ARGUMENTS,
    DURATION,
    IDENTIFIER,
    JUDGES,
    SECONDS,
    TYPES,
    is_identifier,
)
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.translated import LANGUAGES, Translated
from sopilot.language.handbook.values import json_value

Json = dict[str, object]
Schema = dict[str, object]
OPERATORS: dict[type, str] = {All: "all", AnyOf: "any", InOrder: "in_order", First: "first"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _itself(value: Any) -> object:
    return value


class Kind(NamedTuple):
    """``write`` also gets the handbook: a call is written by the inputs of its action."""

    schema: Schema
    write: Callable[[Any, Handbook], Value]
    json: Callable[[Any], object] = _itself
    read: Callable[[DiagnosticCollector, Node, str], Any] | None = None


def _written(value: object, handbook: Handbook) -> Value:
    return scalar(value)


# --- words and flags -----------------------------------------------------------------


def _read_names(report: DiagnosticCollector, node: Node, what: str) -> tuple[str, ...]:
    """Words of the author's: one, or a list."""
    names: list[str] = []
    for item in node.items if isinstance(node, ListNode) else (node,):
        name = fields.text(report, item, f"a topic of {what}")
        if name and not is_identifier(name):
            fields.bad_identifier(report, item, name, "a topic")
        elif name:
            names.append(name)
    return tuple(dict.fromkeys(names))


def _read_type(report: DiagnosticCollector, node: Node, what: str) -> str:
    if isinstance(node, ScalarNode) and node.text in TYPES:
        return node.text
    shown = fields.describe(node)
    help = did_you_mean(node.text if isinstance(node, ScalarNode) else "", TYPES)
    report.error("unknown-type", f"there is no input type {shown}", node, help)
    return "string"


def _read_schema(report: DiagnosticCollector, node: Node, what: str) -> Json | None:
    if isinstance(node, MapNode):
        value = json_value(report, node, "a schema's value")
        return value if isinstance(value, dict) else None
    fields.wrong(report, node, what, "a mapping (JSON Schema)")
    return None


def _read_count(report: DiagnosticCollector, node: Node, what: str) -> int:
    number = node.value if isinstance(node, ScalarNode) else None
    if isinstance(number, int) and not isinstance(number, bool) and number >= 1:
        return number
    fields.wrong(report, node, what, "a whole number from 1")
    return 1


def _read_roles(report: DiagnosticCollector, node: Node, what: str) -> tuple[str, ...]:
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
    return tuple(roles)


def _read_seconds(report: DiagnosticCollector, node: Node, what: str) -> int | None:
    if isinstance(node, ScalarNode):
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**10:
            return value
        if isinstance(value, str) and re.fullmatch(DURATION, value):
            return int(value[:-1]) * SECONDS[value[-1]]
    fields.wrong(report, node, what, "a time like `90s`, `30m`, `1h` or `2d`")
    return None


def _read_examples(report: DiagnosticCollector, node: Node, what: str) -> tuple[Json, ...]:
    examples: list[Json] = []
    for item in node.items if isinstance(node, ListNode) else (node,):
        value = json_value(report, item, "an example's value")
        if isinstance(value, dict):
            examples.append(value)
        else:
            fields.wrong(report, item, f"an example of {what}", "a mapping of names to values")
    return tuple(examples)


def _read_confirm(report: DiagnosticCollector, node: Node, what: str) -> str | None:
    """What the user is told; `false` says that nobody is asked, which is empty text."""
    if isinstance(node, ScalarNode) and node.value is False:
        return ""
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.text.strip():
        return node.text
    fields.wrong(report, node, what, "what the user is told, or `false`")
    return None


def write_wording(says: str) -> Value:
    if isinstance(says, Translated):
        return {language: scalar(text) for language, text in says.texts.items()}
    return scalar(says)


def wording_to_json(says: str) -> object:
    return dict(says.texts) if isinstance(says, Translated) else says


def _write_seconds(seconds: int, handbook: Handbook) -> Value:
    unit = max((one for one in SECONDS if seconds % SECONDS[one] == 0), key=SECONDS.__getitem__)
    return f"{seconds // SECONDS[unit]}{unit}"


def _write_names(names: tuple[str, ...], handbook: Handbook) -> Value:
    return "[" + ", ".join(names) + "]"


_NAME: Schema = {"type": "string", "pattern": f"^{IDENTIFIER}$"}
_ROLE: Schema = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_-]*$"}
_CALL: Schema = {"type": "string", "pattern": r"^\s*[A-Za-z_]"}

_TEXT: Schema = {"type": "string"}

TEXT = Kind(_TEXT, _written, read=fields.text)
WORDING = Kind(
    {
        "anyOf": [
            _TEXT,
            {
                "type": "object",
                "properties": dict.fromkeys(LANGUAGES, _TEXT),
                "additionalProperties": False,
                "minProperties": 1,
            },
        ]
    },
    lambda says, _: write_wording(says),
    wording_to_json,
    fields.worded,
)
CONFIRM_TEXT = Kind(
    {"anyOf": [{"type": "string", "minLength": 1}, {"const": False}]},
    lambda told, _: scalar(told) if told else "false",
    read=_read_confirm,
)
FLAG = Kind({"type": "boolean"}, _written, read=fields.flag)
NAME = Kind(_NAME, _written)
NAMES = Kind({"anyOf": [_NAME, {"type": "array", "items": _NAME}]}, _write_names, list, _read_names)
TYPE = Kind({"enum": list(TYPES)}, _written, read=_read_type)
SCHEMA = Kind({"type": "object"}, lambda one, _: flow(dict(one)), dict, _read_schema)
EXAMPLES = Kind(
    {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
    lambda examples, _: [flow(dict(one)) for one in examples],
    lambda examples: [dict(one) for one in examples],
    _read_examples,
)
COUNT = Kind({"type": "integer", "minimum": 1}, _written, read=_read_count)
ROLES = Kind(
    {"anyOf": [_ROLE, {"type": "array", "items": _ROLE, "minItems": 1}]},
    lambda roles, _: [scalar(role) for role in roles],
    list,
    _read_roles,
)
SECONDS_LONG = Kind(
    {
        "anyOf": [
            {"type": "string", "pattern": f"^{DURATION}$"},
            {"type": "integer", "minimum": 1},
        ]
    },
    _write_seconds,
    read=_read_seconds,
)
JUDGE = Kind({"enum": list(JUDGES)}, lambda one, _: "model")


# --- trees, calls, recipes -----------------------------------------------------------


def _write_tree(tree: Tree, handbook: Handbook) -> Value:
    if isinstance(tree, Leaf):
        # A leaf binds every parameter in order, so position is enough.
        text = f"{tree.predicate}({', '.join(write_term(term) for _, term in tree.arguments)})"
        return scalar(text) if tree.wanted else {"not": scalar(text)}
    if otherwise := otherwise_of(tree):
        return {
            "requires": _write_tree(without_otherwise(tree), handbook),
            "otherwise": scalar(otherwise),
        }
    return {OPERATORS[type(tree)]: [_write_tree(child, handbook) for child in tree.children]}


def tree_to_json(tree: Tree) -> Json:
    if isinstance(tree, Leaf):
        data: Json = {"predicate": tree.predicate}
        if tree.arguments:
            data["arguments"] = binding_to_json(tree.arguments)
        if not tree.wanted:
            data["wanted"] = False
        return data
    if otherwise := otherwise_of(tree):
        return {"requires": tree_to_json(without_otherwise(tree)), "otherwise": otherwise}
    return {OPERATORS[type(tree)]: [tree_to_json(child) for child in tree.children]}


def binding_to_json(binding: CallBinding) -> list[object]:
    return [[parameter, _term_to_json(term)] for parameter, term in binding]


def _term_to_json(term: Origin) -> Json:
    if isinstance(term, Path):
        return {"answer": str(term)}
    return {"name": term.name} if isinstance(term, Name) else {"value": term.value}


def write_call(name: str, arguments: CallBinding, handbook: Handbook) -> str:
    action = handbook.actions.get(name)
    inputs = action.input_names() if action else ()
    written: list[str] = []
    for at, (parameter, term) in enumerate(arguments):
        in_place = at < len(inputs) and inputs[at] == parameter
        text = write_term(term)
        written.append(text if in_place else f"{parameter}={text}")
    return scalar(f"{name}({', '.join(written)})")


def _call_to_json(call: ActionCall) -> Json:
    each = f"{call.each} as {call.element}" if call.each is not None else ""
    arguments = binding_to_json(call.arguments)
    data = {"action": call.action, "arguments": arguments, "name": call.name, "each": each}
    return {key: item for key, item in data.items() if item}


def _write_recipe(recipe: Recipe, handbook: Handbook) -> Value:
    calls = [_write_recipe_call(one, handbook) for one in recipe]
    return calls[0] if len(calls) == 1 else {"all": calls}


def _write_recipe_call(call: ActionCall, handbook: Handbook) -> Value:
    text = write_call(call.action, call.arguments, handbook)
    if not call.name and call.each is None:
        return text
    data: dict[str, Value] = {"call": text}
    if call.name:
        data["name"] = scalar(call.name)
    if call.each is not None:
        data["for_each"] = scalar(f"{call.each} as {call.element}")
    return data


def _write_recipes(recipes: tuple[Recipe, ...], handbook: Handbook) -> Value:
    written = [_write_recipe(one, handbook) for one in recipes]
    return written[0] if len(written) == 1 else {"any": written}


CALL = Kind(
    _CALL, lambda call, handbook: write_call(call.action, call.arguments, handbook), _call_to_json
)
TREE = Kind(ref("requirement"), _write_tree, tree_to_json)
RECIPES = Kind(
    ref("recipe"),
    _write_recipes,
    lambda recipes: [[_call_to_json(call) for call in recipe] for recipe in recipes],
)
GOAL = Kind(_CALL, _written)
BINDING = Kind(_CALL, _written, binding_to_json)
TOOL_FREE = Kind({"const": ARGUMENTS}, lambda one, _: ARGUMENTS)
