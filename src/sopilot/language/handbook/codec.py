"""Handbook → JSON, and the hash that names a handbook's content.

Fields at their default are left out, so that a field added later does not
change the hash of a handbook that does not use it. What has an order keeps it
(inputs, parameters, arguments, children); what has none is an object.
"""

from __future__ import annotations

import hashlib
import json

from sopilot.language.handbook._kinds import Json, wording_to_json
from sopilot.language.handbook._model import Handbook
from sopilot.language.handbook._tables import ACTION, PREDICATE, PROCEDURE, as_json

FORMAT = 1
"""Version of the JSON form."""


def handbook_to_json(handbook: Handbook) -> Json:
    data: Json = {
        "format": FORMAT,
        "handbook": handbook.name,
        "says": wording_to_json(handbook.says),
        "parameters": dict(handbook.parameters),
        "actions": {name: as_json(one, ACTION) for name, one in handbook.actions.items()},
        "predicates": {
            name: as_json(one, PREDICATE)
            for name, one in handbook.predicates.items()
            if not one.made
        },
        "procedures": {name: as_json(one, PROCEDURE) for name, one in handbook.procedures.items()},
    }
    return {key: item for key, item in data.items() if item}


def handbook_hash(handbook: Handbook) -> str:
    """SHA-256 over the JSON form with sorted keys. 1, 1.0 and true are three values here as in
    a tree: the sentences they end up in differ."""
    text = json.dumps(
        handbook_to_json(handbook),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
