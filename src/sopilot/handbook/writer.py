"""Handbook → YAML text and hash."""

from __future__ import annotations

import hashlib
import json

from sopilot.handbook.field_tables import (
    predicate_to_yaml,
    procedure_to_yaml,
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
    lines: list[str] = []
    for key, value in _sections(handbook).items():
        if value:
            emit(lines, key, value, 0)
    return "\n".join(lines) + "\n"


def handbook_hash(handbook: Handbook) -> str:
    """SHA-256 over what is written, with the named parts in alphabetical order.

    Fields at their default aren't written, so a field added later doesn't change the hash of a
    handbook that doesn't use it. 1, 1.0 and true are three values here as in a tree: the
    sentences they end up in differ.
    """
    sections = {
        key: dict(sorted(value.items())) if isinstance(value, dict) and key != "says" else value
        for key, value in _sections(handbook).items()
        if value
    }
    text = json.dumps(sections, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _sections(handbook: Handbook) -> dict[str, Value]:
    return {
        "handbook": scalar(handbook.name),
        "says": write_wording(handbook.says) if handbook.says else "",
        "parameters": {
            name: flow(item) if isinstance(item, list | dict) else scalar(item)
            for name, item in handbook.parameters.items()
        },
        "actions": {name: written(item, handbook) for name, item in handbook.actions.items()},
        "predicates": {
            signature(predicate.name, predicate.parameters): predicate_to_yaml(predicate, handbook)
            for predicate in handbook.predicates.values()
            if not predicate.made
        },
        "procedures": {
            name: procedure_to_yaml(item, handbook) for name, item in handbook.procedures.items()
        },
    }


def signature(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})"
