"""Fields of a handbook's parts: one table for keys, schema, writer and plain reading.

A new field is a line here and an attribute of the model. Readers of trees, calls and recipes need
the names in scope and live elsewhere. ``handbook_schema`` knows shapes, not meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sopilot.handbook import fields
from sopilot.handbook.call_syntax import write_term
from sopilot.handbook.fields import Entry, Fields
from sopilot.handbook.grammar import (
    ARGUMENTS,
    DURATION,
    HANDBOOK_NAME,
    IDENTIFIER,
    LANGUAGES,
    RECIPE_OPERATORS,
    SECONDS,
    SIGNATURE,
    TREE_OPERATORS,
    TYPES,
    USER,
    Translated,
    is_identifier,
)
from sopilot.handbook.model import (
    Action,
    ActionCall,
    Approval,
    Computed,
    Handbook,
    Input,
    Predicate,
    Procedure,
    Recipe,
)
from sopilot.handbook.nodes import MapNode, Node, ScalarNode
from sopilot.handbook.requirements import (
    OPERATORS,
    CallBinding,
    Leaf,
    Tree,
    otherwise_of,
    without_otherwise,
)
from sopilot.handbook.yaml import Value, flow, json_value, scalar
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean

Json = dict[str, object]
Schema = dict[str, object]


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


class Kind(NamedTuple):
    """``write`` also gets the handbook: a call is written by the inputs of its action. Kinds
    without ``read`` need the names in scope, so their readers live elsewhere."""

    schema: Schema
    write: Callable[[Any, Handbook], Value]
    read: Callable[[DiagnosticCollector, Node, str], Any] | None = None


def _written(value: object, handbook: Handbook) -> Value:
    return scalar(value)


def _read_names(report: DiagnosticCollector, node: Node, what: str) -> tuple[str, ...]:
    """Words of the author's: one, or a list."""
    names: list[str] = []
    for item in fields.one_or_more(node):
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
    fields.wrong(report, node, what, "a whole number of at least 1")
    return 1


def _read_roles(report: DiagnosticCollector, node: Node, what: str) -> tuple[str, ...]:
    items = fields.one_or_more(node)
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
    for item in fields.one_or_more(node):
        value = json_value(report, item, "an example's value")
        if isinstance(value, dict):
            examples.append(value)
        else:
            fields.wrong(report, item, f"an example of {what}", "a mapping of names to values")
    return tuple(examples)


def _read_confirm(report: DiagnosticCollector, node: Node, what: str) -> str | None:
    """The question to the user. `false` reads as empty text, which asks nobody."""
    if isinstance(node, ScalarNode) and node.value is False:
        return ""
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.text.strip():
        return node.text
    fields.wrong(report, node, what, "the sentence for the user, or `false`")
    return None


def _word(word: str, help: str) -> Kind:
    """A field with one possible value, which is true in the model."""

    def read(report: DiagnosticCollector, node: Node, what: str) -> bool:
        if fields.text(report, node, what) == word:
            return True
        fields.wrong(report, node, what, f"`{word}`", help)
        return False

    return Kind({"enum": [word]}, lambda item, _: word, read)


def write_wording(says: str) -> Value:
    if isinstance(says, Translated):
        return {language: scalar(text) for language, text in says.texts.items()}
    return scalar(says)


def _write_seconds(seconds: int, handbook: Handbook) -> Value:
    unit = max((item for item in SECONDS if seconds % SECONDS[item] == 0), key=SECONDS.__getitem__)
    return f"{seconds // SECONDS[unit]}{unit}"


def _write_names(names: tuple[str, ...], handbook: Handbook) -> Value:
    return "[" + ", ".join(names) + "]"


_NAME: Schema = {"type": "string", "pattern": f"^{IDENTIFIER}$"}
_ROLE: Schema = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_-]*$"}
_CALL: Schema = {"type": "string", "pattern": r"^\s*[A-Za-z_]"}
_TEXT: Schema = {"type": "string"}
TEXT = Kind(_TEXT, _written, fields.text)

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
    fields.worded,
)

CONFIRM_TEXT = Kind(
    {"anyOf": [{"type": "string", "minLength": 1}, {"const": False}]},
    lambda message, _: scalar(message) if message else "false",
    _read_confirm,
)

FLAG = Kind({"type": "boolean"}, _written, fields.flag)
NAME = Kind(_NAME, _written)
NAMES = Kind({"anyOf": [_NAME, {"type": "array", "items": _NAME}]}, _write_names, _read_names)
TYPE = Kind({"enum": list(TYPES)}, _written, _read_type)
SCHEMA = Kind({"type": "object"}, lambda item, _: flow(dict(item)), _read_schema)

EXAMPLES = Kind(
    {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
    lambda examples, _: [flow(dict(example)) for example in examples],
    _read_examples,
)

COUNT = Kind({"type": "integer", "minimum": 1}, _written, _read_count)

ROLES = Kind(
    {"anyOf": [_ROLE, {"type": "array", "items": _ROLE, "minItems": 1}]},
    lambda roles, _: [scalar(role) for role in roles],
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
    _read_seconds,
)

JUDGE = _word("model", "sopilot judges by a `verdict`; `judged_by` can only be `model`")
STATE = _word("shared", "leave `state` out if the server keeps its state per connection")


def _write_tree(tree: Tree, handbook: Handbook) -> Value:
    if isinstance(tree, Leaf):
        predicate = handbook.predicates.get(tree.predicate)
        declared = predicate.parameters if predicate is not None else ()
        text = _write_bound(tree.predicate, tree.arguments, declared)
        return text if tree.wanted else {"not": text}
    if otherwise := otherwise_of(tree):
        return {
            "requires": _write_tree(without_otherwise(tree), handbook),
            "otherwise": scalar(otherwise),
        }
    return {OPERATORS[type(tree)]: [_write_tree(child, handbook) for child in tree.children]}


def write_call(name: str, arguments: CallBinding, handbook: Handbook) -> str:
    action = handbook.actions.get(name)
    return _write_bound(name, arguments, action.input_names() if action else ())


def _write_bound(name: str, arguments: CallBinding, declared: tuple[str, ...]) -> str:
    """By position, where an argument stands in the place of its parameter."""
    written: list[str] = []
    for at, (parameter, term) in enumerate(arguments):
        in_place = at < len(declared) and declared[at] == parameter
        text = write_term(term)
        written.append(text if in_place else f"{parameter}={text}")
    return scalar(f"{name}({', '.join(written)})")


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
    alternatives = [
        _one_or_under("all", [_write_recipe_call(call, handbook) for call in recipe])
        for recipe in recipes
    ]
    return _one_or_under("any", alternatives)


def _one_or_under(operator: str, parts: list[Value]) -> Value:
    return parts[0] if len(parts) == 1 else {operator: parts}


CALL = Kind(_CALL, lambda call, handbook: write_call(call.action, call.arguments, handbook))
TREE = Kind(ref("requirement"), _write_tree)
RECIPES = Kind(ref("recipe"), _write_recipes)
GOAL = Kind(_CALL, _written)
NOT_CONSTANT = r"(?!(true|false|null)$)"


Table = tuple[Entry[Kind], ...]

TABLES: dict[type, Table] = {}


def _table(part: type[Any], *entries: Entry[Kind]) -> Table:
    TABLES[part] = fields.filled(part, entries)
    return TABLES[part]


def keys(table: Table) -> tuple[str, ...]:
    return tuple(entry.key for entry in table)


def closed(table: Table, required: list[str] | None = None) -> Schema:
    """An object with these keys only, in the order of the language."""
    return closed_object({entry.key: entry.kind.schema for entry in table}, required)


def closed_object(shapes: Mapping[str, Schema], required: list[str] | None = None) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": dict(shapes),
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return schema


def written(
    part: Any, handbook: Handbook, values: Mapping[str, Value | None] | None = None
) -> dict[str, Value]:
    """The fields that aren't at their default; ``values`` replaces some, or leaves them out."""
    values = values or {}
    data: dict[str, Value] = {}
    for entry in TABLES[type(part)]:
        value = getattr(part, entry.attribute)
        if entry.key in values:
            replaced = values[entry.key]
            if replaced is not None:
                data[entry.key] = replaced
        elif value != entry.default:
            data[entry.key] = entry.kind.write(value, handbook)
    return data


Special = Mapping[str, Callable[[], object]]
"""Readers of the fields that need the names in scope, by key."""


def read_plain(
    report: DiagnosticCollector, result: Fields, table: Table, special: Special | None = None
) -> dict[str, Any]:
    """The fields that are there, by attribute; the others keep the model's default."""
    values: dict[str, Any] = {}
    for entry in table:
        if entry.key not in result:
            continue
        if special is not None and entry.key in special:
            values[entry.attribute] = special[entry.key]()
        elif entry.kind.read is not None:
            value = entry.kind.read(report, result[entry.key].value, f"`{entry.key}`")
            values[entry.attribute] = value
    return values


INPUT = _table(
    Input,
    Entry("type", TYPE, default=fields.REQUIRED),
    Entry("says", WORDING),
    Entry("required", FLAG),
    Entry("schema", SCHEMA),
    Entry("secret", FLAG),
)

COMPUTED = _table(
    Computed,
    Entry("value", TEXT),
    Entry("verify", RECIPES, "recipes"),
)


def _write_input(item: Input, handbook: Handbook) -> Value:
    plain = Input(item.name, item.type) == item
    return item.type if plain else written(item, handbook)


INPUTS = Kind(
    {
        "type": "object",
        "patternProperties": {f"^{NOT_CONSTANT}{IDENTIFIER}$": ref("input")},
        "additionalProperties": False,
    },
    lambda inputs, handbook: {item.name: _write_input(item, handbook) for item in inputs},
)

COMPUTATIONS = Kind(
    {
        "type": "object",
        "patternProperties": {
            f"^{NOT_CONSTANT}{IDENTIFIER}$": {
                "anyOf": [TEXT.schema, {"type": "number"}, closed(COMPUTED, ["value"])]
            }
        },
        "additionalProperties": False,
    },
    lambda computed, handbook: {
        item.name: written(item, handbook) if item.recipes else scalar(item.value)
        for item in computed
    },
)

APPROVAL = _table(
    Approval,
    Entry("roles", ROLES),
    Entry("needed", COUNT),
    Entry("expires", SECONDS_LONG, "expires_seconds"),
    Entry("when", TEXT),
)

APPROVALS = Kind(ref("approval"), lambda approval, handbook: written(approval, handbook))

ACTION = _table(
    Action,
    Entry("says", WORDING),
    Entry("input", INPUTS, "inputs"),
    Entry("requires", TREE),
    Entry("irreversible", FLAG),
    Entry("approval", APPROVALS),
    Entry("full_state", FLAG),
    Entry("offered", FLAG),
    Entry("read_only", FLAG),
    Entry("changes", NAMES),
    Entry("reads", NAMES),
    Entry("state", STATE, "shared"),
    Entry("recheck", FLAG),
    Entry("confirm", CONFIRM_TEXT),
    Entry("not_found", TEXT),
    Entry("not_done", TEXT),
    Entry("secret", NAMES, "secrets"),
    Entry("tool", TEXT),
)

CALL_IN_RECIPE: Table = (Entry("call", CALL), Entry("name", NAME), Entry("for_each", CALL))

PREDICATE = _table(
    Predicate,
    Entry("says", WORDING, default=fields.REQUIRED),
    Entry("says_not", WORDING),
    Entry("verify", RECIPES, "recipes"),
    Entry("ask", NAMES, "asks"),
    Entry("established_by", CALL),
    Entry("closed_by", CALL),
    Entry("principal", FLAG),
    Entry("done", CALL),
    Entry("question", TEXT),
    Entry("reusable", FLAG),
    Entry("verdict", TEXT),
    Entry("judged_by", JUDGE, "judged_by_model"),
    Entry("remedy", WORDING),
    Entry("customer_message", WORDING),
    Entry("holds_for", EXAMPLES),
    Entry("fails_for", EXAMPLES),
)

PROCEDURE = _table(
    Procedure,
    Entry("says", WORDING),
    Entry("action", GOAL),
    Entry("inputs", INPUTS),
    Entry("arguments", COMPUTATIONS, "computed"),
    Entry("requires", TREE),
    Entry("worded", TREE),
    Entry("confirm", CONFIRM_TEXT),
    Entry("otherwise", TEXT),
)


def predicate_to_yaml(predicate: Predicate, handbook: Handbook) -> Value:
    verify = ARGUMENTS if predicate.tool_free else USER if predicate.question else ""
    return written(predicate, handbook, {"verify": verify} if verify else {})


def procedure_to_yaml(procedure: Procedure, handbook: Handbook) -> Value:
    goal: Value | None = None
    if procedure.action != procedure.name or procedure.arguments:
        goal = CALL.write(ActionCall(procedure.action, procedure.arguments), handbook)
    return written(procedure, handbook, {"action": goal})


def _named(pattern: str, shape: Schema) -> Schema:
    """An object whose keys are the author's names; a section left empty is null."""
    return {
        "type": ["object", "null"],
        "patternProperties": {f"^{NOT_CONSTANT}{pattern}$": shape},
        "additionalProperties": False,
    }


def _operators(known: tuple[str, ...], item: str, least: dict[str, int]) -> Schema:
    shapes: dict[str, Schema] = {
        key: ref(item)
        if key == "not"
        else {"type": "array", "items": ref(item), "minItems": least.get(key, 0)}
        for key in known
    }
    return closed_object(shapes) | {"minProperties": 1, "maxProperties": 1}


def _or_nothing(schema: Schema) -> Schema:
    return schema | {"type": ["object", "null"]}


_CONSTANT: Schema = {"type": ["string", "number", "boolean", "null", "object", "array"]}
_ONE_WAY: Schema = {"oneOf": [{"required": [way]} for way in ("verify", "established_by", "done")]}
_WHEN = closed_object({"when": ref("tree"), "then": ref("requirement")}, ["when", "then"])

_REFUSED = closed_object(
    {"requires": ref("requirement"), "otherwise": TEXT.schema}, ["requires", "otherwise"]
)


SECTIONS: Mapping[str, Schema] = {
    "handbook": {"type": "string", "pattern": f"^{HANDBOOK_NAME}$"},
    "says": WORDING.schema,
    "parameters": _named(IDENTIFIER, _CONSTANT),
    "actions": _named(IDENTIFIER, ref("action")),
    "predicates": _named(rf"\s*{SIGNATURE}\s*", ref("predicate")),
    "requirements": _named(rf"\s*{SIGNATURE}\s*", ref("requirement")),
    "procedures": _named(IDENTIFIER, ref("procedure")),
}
"""The keys of a handbook."""


def handbook_schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    recipes = _operators(RECIPE_OPERATORS, "recipe", {"all": 1, "any": 1})
    trees = _operators(TREE_OPERATORS[:-2], "tree", {"any": 1, "first": 1})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sopilot handbook",
        **closed_object(SECTIONS, ["handbook"]),
        "$defs": {
            "action": _or_nothing(closed(ACTION)),
            "input": {"anyOf": [TYPE.schema, closed(INPUT)]},
            "approval": {"anyOf": [_ROLE, closed(APPROVAL, ["roles"])]},
            "predicate": closed(PREDICATE, ["says"]) | _ONE_WAY,
            "procedure": _or_nothing(closed(PROCEDURE)),
            "requirement": {"anyOf": [ref("tree"), {"type": "array", "items": ref("tree")}]},
            "tree": {"anyOf": [CALL.schema, trees, _WHEN, _REFUSED]},
            "recipe": {"anyOf": [CALL.schema, closed(CALL_IN_RECIPE, ["call"]), recipes]},
        },
    }
