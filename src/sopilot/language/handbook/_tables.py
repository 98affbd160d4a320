"""What a handbook's parts have, field by field: the one table that keys, schema, writer, JSON
form and the plain part of the reader come from. A new field is a line here and an attribute
of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from sopilot.language.handbook._kinds import (
    BINDING,
    CALL,
    CONFIRM_TEXT,
    COUNT,
    EXAMPLES,
    FLAG,
    GOAL,
    JUDGE,
    NAME,
    NAMES,
    RECIPES,
    ROLES,
    SCHEMA,
    SECONDS_LONG,
    TEXT,
    TOOL_FREE,
    TREE,
    TYPE,
    WORDING,
    Json,
    Kind,
    Schema,
    ref,
)
from sopilot.language.handbook._model import (
    Action,
    ActionCall,
    Handbook,
    Input,
    Predicate,
    Procedure,
)
from sopilot.language.handbook._yaml_text import Value, scalar
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import Fields
from sopilot.language.handbook.grammar import IDENTIFIER, USER

NOT_CONSTANT = r"(?!(true|false|null)$)"


class Entry(NamedTuple):
    """``attribute`` is the model's, where it is called otherwise; without a ``key`` it stands
    in the JSON form only. ``always``: in the JSON form even at its default."""

    key: str
    kind: Kind
    attribute: str = ""
    always: bool = False

    @property
    def of(self) -> str:
        return self.attribute or self.key


Table = tuple[Entry, ...]


_DEFAULTS: dict[type[Any], dict[str, object]] = {}


def _defaults(part: type[Any]) -> Mapping[str, object]:
    if part not in _DEFAULTS:
        found = {one.name: one.default for one in fields(part) if one.default is not MISSING}
        _DEFAULTS[part] = found
    return _DEFAULTS[part]


def keys(table: Table) -> tuple[str, ...]:
    return tuple(entry.key for entry in table if entry.key)


def closed(table: Table, required: list[str] | None = None) -> Schema:
    """An object with these keys only, in the order of the language."""
    return closed_object({entry.key: entry.kind.schema for entry in table if entry.key}, required)


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
    part: Any, table: Table, handbook: Handbook, given: Mapping[str, Value | None] | None = None
) -> dict[str, Value]:
    """The part's fields that are not at their default; ``given`` says otherwise for some keys."""
    given = given or {}
    defaults = _defaults(type(part))
    data: dict[str, Value] = {}
    for entry in table:
        if entry.key in given:
            value = given[entry.key]
            if value is not None:
                data[entry.key] = value
        elif entry.key and getattr(part, entry.of) != defaults.get(entry.of, MISSING):
            data[entry.key] = entry.kind.write(getattr(part, entry.of), handbook)
    return data


def as_json(part: Any, table: Table) -> Json:
    defaults = _defaults(type(part))
    return {
        entry.of: entry.kind.json(value)
        for entry in table
        if (value := getattr(part, entry.of)) != defaults.get(entry.of, MISSING) or entry.always
    }


Special = Mapping[str, Callable[[], object]]
"""Readers of the fields that depend on what is in scope, by key."""


def read_plain(
    report: DiagnosticCollector, found: Fields, table: Table, special: Special | None = None
) -> dict[str, Any]:
    """The fields that are there, by attribute; the others keep the model's default."""
    values: dict[str, Any] = {}
    for entry in table:
        if entry.key not in found:
            continue
        if special is not None and entry.key in special:
            values[entry.of] = special[entry.key]()
        elif entry.kind.read is not None:
            value = entry.kind.read(report, found[entry.key].value, f"`{entry.key}`")
            values[entry.of] = value
    return values


# --- the tables ----------------------------------------------------------------------

INPUT: Table = (
    Entry("", NAME, "name"),
    Entry("type", TYPE, always=True),
    Entry("says", WORDING),
    Entry("required", FLAG),
    Entry("schema", SCHEMA),
    Entry("secret", FLAG),
)
COMPUTED: Table = (
    Entry("", NAME, "name"),
    Entry("value", TEXT),
    Entry("verify", RECIPES, "recipes"),
)


def _write_input(item: Input, handbook: Handbook) -> Value:
    plain = Input(item.name, item.type) == item
    return item.type if plain else written(item, INPUT, handbook, {"type": item.type})


def _write_inputs(inputs: tuple[Input, ...], handbook: Handbook) -> Value:
    return {item.name: _write_input(item, handbook) for item in inputs}


INPUTS = Kind(
    {
        "type": "object",
        "patternProperties": {f"^{NOT_CONSTANT}{IDENTIFIER}$": ref("input")},
        "additionalProperties": False,
    },
    _write_inputs,
    lambda inputs: [as_json(item, INPUT) for item in inputs],
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
        one.name: written(one, COMPUTED, handbook) if one.recipes else scalar(one.value)
        for one in computed
    },
    lambda computed: [as_json(one, COMPUTED) for one in computed],
)
APPROVAL: Table = (
    Entry("roles", ROLES),
    Entry("needed", COUNT, always=True),
    Entry("expires", SECONDS_LONG, "expires_seconds"),
    Entry("when", TEXT),
)
APPROVALS = Kind(
    ref("approval"),
    lambda approval, handbook: written(approval, APPROVAL, handbook),
    lambda approval: as_json(approval, APPROVAL),
)
ACTION: Table = (
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
    Entry("recheck", FLAG),
    Entry("confirm", CONFIRM_TEXT),
    Entry("not_found", TEXT),
    Entry("secret", NAMES, "secrets"),
)
CALL_IN_RECIPE: Table = (Entry("call", CALL), Entry("name", NAME), Entry("for_each", CALL))
PREDICATE: Table = (
    Entry("", NAMES, "parameters"),
    Entry("says", WORDING),
    Entry("says_not", WORDING),
    Entry("verify", RECIPES, "recipes"),
    Entry("", TOOL_FREE, "tool_free"),
    Entry("ask", NAMES, "asks"),
    Entry("established_by", CALL),
    Entry("closed_by", CALL),
    Entry("principal", FLAG),
    Entry("done", CALL),
    Entry("question", TEXT),
    Entry("verdict", TEXT),
    Entry("judged_by", JUDGE, "judged_by_model"),
    Entry("remedy", WORDING),
    Entry("tells", WORDING),
    Entry("holds_for", EXAMPLES),
    Entry("fails_for", EXAMPLES),
)
PROCEDURE: Table = (
    Entry("says", WORDING),
    Entry("action", GOAL),
    Entry("", BINDING, "arguments"),
    Entry("inputs", INPUTS),
    Entry("arguments", COMPUTATIONS, "computed"),
    Entry("requires", TREE),
    Entry("worded", TREE),
    Entry("confirm", CONFIRM_TEXT),
    Entry("otherwise", TEXT),
)


def predicate_to_yaml(predicate: Predicate, handbook: Handbook) -> Value:
    given: dict[str, Value | None] = {"says": WORDING.write(predicate.says, handbook)}
    if predicate.tool_free:
        given["verify"] = TOOL_FREE.write(predicate, handbook)
    elif predicate.question:
        given["verify"] = USER
    return written(predicate, PREDICATE, handbook, given)


def action_to_yaml(action: Action, handbook: Handbook) -> Value:
    return written(action, ACTION, handbook)


def procedure_to_yaml(procedure: Procedure, handbook: Handbook) -> Value:
    goal: Value | None = None
    if procedure.action != procedure.name or procedure.arguments:
        goal = CALL.write(ActionCall(procedure.action, procedure.arguments), handbook)
    return written(procedure, PROCEDURE, handbook, {"action": goal})
