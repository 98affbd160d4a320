"""The published JSON Schema of a handbook file, for editors.

It knows shapes, not meaning: that a call's predicate exists is the reader's
business. ``handbook.schema.json`` beside this file is its output.
"""

from __future__ import annotations

import json
from importlib.resources import files

from sopilot.language.handbook.grammar import (
    ACTION_KEYS,
    APPROVAL_KEYS,
    CALL_KEYS,
    DURATION,
    HANDBOOK_KEYS,
    HANDBOOK_NAME,
    IDENTIFIER,
    INPUT_KEYS,
    JUDGES,
    PREDICATE_KEYS,
    PROCEDURE_KEYS,
    RECIPE_OPERATORS,
    SIGNATURE,
    TREE_OPERATORS,
    TYPES,
)
from sopilot.language.handbook.translated import LANGUAGES

Schema = dict[str, object]

_NOT_CONSTANT = r"(?!(true|false|null)$)"
_TEXT: Schema = {"type": "string"}
_WORDING: Schema = {
    "anyOf": [
        _TEXT,
        {
            "type": "object",
            "properties": dict.fromkeys(LANGUAGES, _TEXT),
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
_FLAG: Schema = {"type": "boolean"}
_CALL: Schema = {"type": "string", "pattern": r"^\s*[A-Za-z_]"}
_ROLE: Schema = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_-]*$"}
_NAME: Schema = {"type": "string", "pattern": f"^{IDENTIFIER}$"}
_NAMES: Schema = {"anyOf": [_NAME, {"type": "array", "items": _NAME}]}
_JUDGE: Schema = {"enum": list(JUDGES)}
_CONSTANT: Schema = {"type": ["string", "number", "boolean", "null"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _closed(known: tuple[str, ...], shapes: dict[str, Schema], required: list[str]) -> Schema:
    """An object with these keys only, in the order of the language."""
    schema: Schema = {
        "type": "object",
        "properties": {key: shapes[key] for key in known},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return schema


def _named(pattern: str, shape: Schema) -> Schema:
    """An object whose keys are the author's names; a section left empty is null."""
    return {
        "type": ["object", "null"],
        "patternProperties": {f"^{_NOT_CONSTANT}{pattern}$": shape},
        "additionalProperties": False,
    }


def _operators(known: tuple[str, ...], item: str, least: dict[str, int]) -> Schema:
    shapes: dict[str, Schema] = {
        key: _ref(item)
        if key == "not"
        else {"type": "array", "items": _ref(item), "minItems": least.get(key, 0)}
        for key in known
    }
    return _closed(known, shapes, []) | {"minProperties": 1, "maxProperties": 1}


def _tree() -> Schema:
    return {"anyOf": [_CALL, _operators(TREE_OPERATORS, "tree", {"any": 1, "first": 1})]}


def _recipe() -> Schema:
    described = _closed(CALL_KEYS, {"call": _CALL, "name": _NAME, "for_each": _CALL}, ["call"])
    operators = _operators(RECIPE_OPERATORS, "recipe", {"all": 1, "any": 1})
    return {"anyOf": [_CALL, described, operators]}


def _requirement() -> Schema:
    return {"anyOf": [_ref("tree"), {"type": "array", "items": _ref("tree")}]}


def _input() -> Schema:
    kind: Schema = {"enum": list(TYPES)}
    shapes: dict[str, Schema] = {
        "type": kind,
        "says": _WORDING,
        "required": _FLAG,
        "schema": {"type": "object"},
    }
    return {"anyOf": [kind, _closed(INPUT_KEYS, shapes, [])]}


def _approval() -> Schema:
    roles: Schema = {"anyOf": [_ROLE, {"type": "array", "items": _ROLE, "minItems": 1}]}
    expires: Schema = {
        "anyOf": [
            {"type": "string", "pattern": f"^{DURATION}$"},
            {"type": "integer", "minimum": 1},
        ]
    }
    needed: Schema = {"type": "integer", "minimum": 1}
    shapes = {"roles": roles, "needed": needed, "expires": expires}
    return {"anyOf": [_ROLE, _closed(APPROVAL_KEYS, shapes, ["roles"])]}


def _action() -> Schema:
    shapes = {
        "says": _WORDING,
        "input": {
            "type": "object",
            "patternProperties": {f"^{_NOT_CONSTANT}{IDENTIFIER}$": _ref("input")},
            "additionalProperties": False,
        },
        "requires": _ref("requirement"),
        "irreversible": _FLAG,
        "approval": _ref("approval"),
        "full_state": _FLAG,
        "offered": _FLAG,
        "read_only": _FLAG,
        "changes": _NAMES,
        "reads": _NAMES,
        "recheck": _FLAG,
    }
    return _closed(ACTION_KEYS, shapes, []) | {"type": ["object", "null"]}


def _predicate() -> Schema:
    shapes = {
        "says": _WORDING,
        "says_not": _WORDING,
        "verify": _ref("recipe"),
        "ask": _NAMES,
        "established_by": _CALL,
        "closed_by": _CALL,
        "verdict": _TEXT,
        "judged_by": _JUDGE,
        "remedy": _WORDING,
    }
    one_way: Schema = {"oneOf": [{"required": ["verify"]}, {"required": ["established_by"]}]}
    return _closed(PREDICATE_KEYS, shapes, ["says"]) | one_way


def _procedure() -> Schema:
    shapes = {
        "says": _WORDING,
        "action": _CALL,
        "requires": _ref("requirement"),
        "worded": _ref("requirement"),
    }
    return _closed(PROCEDURE_KEYS, shapes, []) | {"type": ["object", "null"]}


def handbook_schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    shapes: dict[str, Schema] = {
        "handbook": {"type": "string", "pattern": f"^{HANDBOOK_NAME}$"},
        "says": _WORDING,
        "parameters": _named(IDENTIFIER, _CONSTANT),
        "actions": _named(IDENTIFIER, _ref("action")),
        "predicates": _named(rf"\s*{SIGNATURE}\s*", _ref("predicate")),
        "procedures": _named(IDENTIFIER, _ref("procedure")),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sopilot handbook",
        **_closed(HANDBOOK_KEYS, shapes, ["handbook"]),
        "$defs": {
            "action": _action(),
            "input": _input(),
            "approval": _approval(),
            "predicate": _predicate(),
            "procedure": _procedure(),
            "requirement": _requirement(),
            "tree": _tree(),
            "recipe": _recipe(),
        },
    }


def schema_text() -> str:
    return json.dumps(handbook_schema(), indent=2) + "\n"


def published_schema() -> str:
    """The file that ships."""
    return (
        files("sopilot.language.handbook")
        .joinpath("handbook.schema.json")
        .read_text(encoding="utf-8")
    )
