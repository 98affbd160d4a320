"""The published JSON Schema of a handbook file, for editors.

It knows shapes, not meaning: that a call's predicate exists is the reader's
business. ``handbook.schema.json`` beside this file is its output.
"""

from __future__ import annotations

from importlib.resources import files

from sopilot.language.handbook._kinds import CALL, ROLES, TEXT, TYPE, WORDING, Schema, ref
from sopilot.language.handbook._tables import (
    ACTION,
    APPROVAL,
    CALL_IN_RECIPE,
    INPUT,
    NOT_CONSTANT,
    PREDICATE,
    PROCEDURE,
    closed,
    closed_object,
)
from sopilot.language.handbook.grammar import (
    HANDBOOK_NAME,
    IDENTIFIER,
    RECIPE_OPERATORS,
    SIGNATURE,
    TREE_OPERATORS,
)


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
_ROLE = next(iter(ROLES.schema["anyOf"]))  # type: ignore[call-overload]  # a list of schemas


def handbook_schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    shapes: dict[str, Schema] = {
        "handbook": {"type": "string", "pattern": f"^{HANDBOOK_NAME}$"},
        "says": WORDING.schema,
        "parameters": _named(IDENTIFIER, _CONSTANT),
        "actions": _named(IDENTIFIER, ref("action")),
        "predicates": _named(rf"\s*{SIGNATURE}\s*", ref("predicate")),
        "requirements": _named(rf"\s*{SIGNATURE}\s*", ref("requirement")),
        "procedures": _named(IDENTIFIER, ref("procedure")),
    }
    recipes = _operators(RECIPE_OPERATORS, "recipe", {"all": 1, "any": 1})
    trees = _operators(TREE_OPERATORS[:-2], "tree", {"any": 1, "first": 1})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sopilot handbook",
        **closed_object(shapes, ["handbook"]),
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


def published_schema() -> str:
    """The file that ships."""
    return (
        files("sopilot.language.handbook")
        .joinpath("handbook.schema.json")
        .read_text(encoding="utf-8")
    )
