"""Handbook → JSON, and the hash that names a handbook's content.

Fields at their default are left out, so that a field added later does not
change the hash of a handbook that does not use it. What has an order keeps it
(inputs, parameters, arguments, children); what has none is an object.
"""

from __future__ import annotations

import hashlib
import json

from sopilot.language.handbook._model import (
    Action,
    ActionCall,
    Approval,
    Handbook,
    Input,
    Predicate,
    Procedure,
)
from sopilot.language.handbook._tree import (
    NOTHING,
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
)
from sopilot.language.handbook.translated import Translated

FORMAT = 1
"""Version of the JSON form."""

Json = dict[str, object]
OPERATORS: dict[type, str] = {All: "all", AnyOf: "any", InOrder: "in_order", First: "first"}


def handbook_to_json(handbook: Handbook) -> Json:
    return _trimmed(
        {
            "format": FORMAT,
            "handbook": handbook.name,
            "says": _wording(handbook.says),
            "parameters": dict(handbook.parameters),
            "actions": {name: _action(one) for name, one in handbook.actions.items()},
            "predicates": {name: _predicate(one) for name, one in handbook.predicates.items()},
            "procedures": {name: _procedure(one) for name, one in handbook.procedures.items()},
        }
    )


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


def _wording(says: str) -> object:
    return dict(says.texts) if isinstance(says, Translated) else says


def _trimmed(data: Json) -> Json:
    """Without what says nothing: empty text, empty lists and objects, false, null."""
    return {key: item for key, item in data.items() if item not in ("", None, False, [], {})}


def tree_to_json(tree: Tree) -> Json:
    if isinstance(tree, Leaf):
        data: Json = {"predicate": tree.predicate}
        if tree.arguments:
            data["arguments"] = binding_to_json(tree.arguments)
        if not tree.wanted:
            data["wanted"] = False
        return data
    return {OPERATORS[type(tree)]: [tree_to_json(child) for child in tree.children]}


def binding_to_json(binding: CallBinding) -> list[object]:
    return [[parameter, _term(term)] for parameter, term in binding]


def _term(term: Origin) -> Json:
    if isinstance(term, Path):
        return {"answer": str(term)}
    return {"name": term.name} if isinstance(term, Name) else {"value": term.value}


def _call(call: ActionCall) -> Json:
    return _trimmed(
        {
            "action": call.action,
            "arguments": binding_to_json(call.arguments),
            "name": call.name,
            "each": f"{call.each} as {call.element}" if call.each is not None else "",
        }
    )


def _input(item: Input) -> Json:
    data = _trimmed({"name": item.name, "type": item.type, "says": _wording(item.says)})
    if not item.required:
        data["required"] = False
    if item.schema is not None:
        data["schema"] = dict(item.schema)
    return data


def _approval(approval: Approval) -> Json:
    data: Json = {"roles": list(approval.roles), "needed": approval.needed}
    if approval.expires_seconds is not None:
        data["expires_seconds"] = approval.expires_seconds
    return data


def _action(action: Action) -> Json:
    data = _trimmed(
        {
            "inputs": [_input(item) for item in action.inputs],
            "says": _wording(action.says),
            "irreversible": action.irreversible,
            "approval": _approval(action.approval) if action.approval else None,
            "full_state": action.full_state,
            "read_only": action.read_only,
            "recheck": action.recheck,
        }
    )
    if action.requires != NOTHING:
        data["requires"] = tree_to_json(action.requires)
    if not action.offered:
        data["offered"] = False
    for key, topics in (("changes", action.changes), ("reads", action.reads)):
        if topics is not None:
            data[key] = list(topics)
    return data


def _predicate(predicate: Predicate) -> Json:
    gate = predicate.established_by
    data = _trimmed(
        {
            "parameters": list(predicate.parameters),
            "says": _wording(predicate.says),
            "says_not": _wording(predicate.says_not),
            "recipes": [[_call(call) for call in recipe] for recipe in predicate.recipes],
            "established_by": _call(gate) if gate is not None else None,
            "tool_free": predicate.tool_free,
            "remedy": _wording(predicate.remedy),
            "asks": list(predicate.asks),
            "judged_by_model": predicate.judged_by_model,
            "closed_by": _call(predicate.closed_by) if predicate.closed_by else None,
        }
    )
    if predicate.verdict is not None:
        data["verdict"] = predicate.verdict
    return data


def _procedure(procedure: Procedure) -> Json:
    data = _trimmed(
        {
            "action": procedure.action,
            "says": _wording(procedure.says),
            "arguments": binding_to_json(procedure.arguments),
        }
    )
    if procedure.requires != NOTHING:
        data["requires"] = tree_to_json(procedure.requires)
    if procedure.worded is not None:
        data["worded"] = tree_to_json(procedure.worded)
    return data
