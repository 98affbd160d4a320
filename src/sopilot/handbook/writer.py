"""Handbook → YAML text, JSON form and hash.

The JSON form leaves out fields at their default, so that a field added later doesn't change the
hash of a handbook that doesn't use it. Ordered parts are lists, the others objects.
"""

from __future__ import annotations

import hashlib
import json

from sopilot.handbook.field_tables import (
    predicate_to_yaml,
    procedure_to_yaml,
    to_json,
    write_wording,
    written,
)
from sopilot.handbook.model import Handbook
from sopilot.handbook.yaml import Value, emit, flow, scalar


def write_handbook(handbook: Handbook) -> str:
    """Reading the text gives an equal handbook.

    That holds for every handbook the language can say: names are identifiers,
    ``any`` and ``first`` have options, no argument's name is also a handbook
    parameter's.
    """
    sections: dict[str, Value] = {"handbook": scalar(handbook.name)}
    if handbook.says:
        sections["says"] = write_wording(handbook.says)
    sections["parameters"] = {
        name: flow(item) if isinstance(item, list | dict) else scalar(item)
        for name, item in handbook.parameters.items()
    }
    sections["actions"] = {name: written(item, handbook) for name, item in handbook.actions.items()}
    sections["predicates"] = {
        signature(predicate.name, predicate.parameters): predicate_to_yaml(predicate, handbook)
        for predicate in handbook.predicates.values()
        if not predicate.made
    }
    sections["procedures"] = {
        name: procedure_to_yaml(item, handbook) for name, item in handbook.procedures.items()
    }
    lines: list[str] = []
    for key, value in sections.items():
        if value:
            emit(lines, key, value, 0)
    return "\n".join(lines) + "\n"


def signature(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})"


FORMAT = 1
"""Version of the JSON form."""


def handbook_hash(handbook: Handbook) -> str:
    """SHA-256 over the JSON form with sorted keys. 1, 1.0 and true are three values here as in
    a tree: the sentences they end up in differ."""
    parts = {
        "format": FORMAT,
        "handbook": handbook.name,
        "says": handbook.says,
        "parameters": handbook.parameters,
        "actions": handbook.actions,
        "predicates": {name: item for name, item in handbook.predicates.items() if not item.made},
        "procedures": handbook.procedures,
    }
    text = json.dumps(
        {key: to_json(item) for key, item in parts.items() if item},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
