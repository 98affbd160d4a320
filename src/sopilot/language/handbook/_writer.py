"""Handbook → YAML text, as a person would have written it."""

from __future__ import annotations

import json
import re

from sopilot.language.handbook._expressions import write_term
from sopilot.language.handbook._model import (
    Action,
    ActionCall,
    Approval,
    Handbook,
    Input,
    Predicate,
    Procedure,
)
from sopilot.language.handbook._scalars import is_surprising, resolve
from sopilot.language.handbook._tree import NOTHING, CallBinding, Leaf, Tree
from sopilot.language.handbook.codec import OPERATORS
from sopilot.language.handbook.grammar import ARGUMENTS, SECONDS
from sopilot.language.handbook.translated import Translated

_PLAIN = re.compile(r"[A-Za-z_(][^\x00-\x1f\x22\x27\x5c\x60\x7f-\xa0\u2028\u2029\ufeff]*")
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")

Value = str | list["Value"] | dict[str, "Value"]
"""What the emitter takes: ready-made scalars, lists and mappings."""


def write_handbook(handbook: Handbook) -> str:
    """Reading the text gives an equal handbook.

    That holds for every handbook the language can say: names are identifiers,
    ``any`` and ``first`` have options, no argument's name is also a handbook
    parameter's.
    """
    sections: dict[str, Value] = {"handbook": scalar(handbook.name)}
    if handbook.says:
        sections["says"] = _wording(handbook.says)
    sections["parameters"] = {name: scalar(one) for name, one in handbook.parameters.items()}
    sections["actions"] = {name: _action(one) for name, one in handbook.actions.items()}
    sections["predicates"] = {
        signature(one.name, one.parameters): _predicate(one, handbook)
        for one in handbook.predicates.values()
    }
    sections["procedures"] = {
        name: _procedure(one, handbook) for name, one in handbook.procedures.items()
    }
    lines: list[str] = []
    for key, value in sections.items():
        if value:
            _emit(lines, key, value, 0)
    return "\n".join(lines) + "\n"


def signature(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})"


def scalar(value: object) -> str:
    """A scalar that reads back as itself."""
    if not isinstance(value, str):
        return json.dumps(value)
    safe = (
        _PLAIN.fullmatch(value)
        and ": " not in value
        and " #" not in value
        and value[-1] not in " :"
        and isinstance(resolve(value), str)
        and not is_surprising(value)
    )
    return value if safe else quoted(value)


def _wording(says: str) -> Value:
    if isinstance(says, Translated):
        return {language: scalar(text) for language, text in says.texts.items()}
    return scalar(says)


def quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _emit(lines: list[str], key: str, value: Value, indent: int) -> None:
    pad = " " * indent
    if isinstance(value, str):
        lines.append(f"{pad}{key}: {value}")
    elif not value:
        lines.append(f"{pad}{key}: " + ("[]" if isinstance(value, list) else "{}"))
    else:
        lines.append(f"{pad}{key}:")
        _emit_inside(lines, value, indent + 2)


def _emit_inside(lines: list[str], value: list[Value] | dict[str, Value], indent: int) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _emit(lines, key, item, indent)
        return
    for item in value:
        if isinstance(item, str):
            lines.append(f"{' ' * indent}- {item}")
        else:
            inner: list[str] = []
            _emit_inside(inner, item, indent + 2)
            inner[0] = f"{' ' * indent}- {inner[0].lstrip(' ')}"
            lines.extend(inner)


def _flow(value: object) -> str:
    """JSON Schema in one line, with every text quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(one) for one in value) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _input(item: Input) -> Value:
    if not item.says and item.required and item.schema is None:
        return item.type
    data: dict[str, Value] = {"type": item.type}
    if item.says:
        data["says"] = _wording(item.says)
    if not item.required:
        data["required"] = "false"
    if item.schema is not None:
        data["schema"] = _flow(dict(item.schema))
    return data


def _approval(approval: Approval) -> Value:
    data: dict[str, Value] = {"roles": [scalar(role) for role in approval.roles]}
    if approval.needed != 1:
        data["needed"] = str(approval.needed)
    seconds = approval.expires_seconds
    if seconds is not None:
        unit = max((one for one in SECONDS if seconds % SECONDS[one] == 0), key=SECONDS.__getitem__)
        data["expires"] = f"{seconds // SECONDS[unit]}{unit}"
    return data


def _action(action: Action) -> Value:
    data: dict[str, Value] = {}
    if action.says:
        data["says"] = _wording(action.says)
    if action.inputs:
        data["input"] = {item.name: _input(item) for item in action.inputs}
    if action.requires != NOTHING:
        data["requires"] = _tree(action.requires)
    if action.irreversible:
        data["irreversible"] = "true"
    if action.approval is not None:
        data["approval"] = _approval(action.approval)
    if action.full_state:
        data["full_state"] = "true"
    if not action.offered:
        data["offered"] = "false"
    if action.read_only:
        data["read_only"] = "true"
    for key, topics in (("changes", action.changes), ("reads", action.reads)):
        if topics is not None:
            data[key] = "[" + ", ".join(topics) + "]"
    if action.recheck:
        data["recheck"] = "true"
    return data


def _tree(tree: Tree) -> Value:
    if isinstance(tree, Leaf):
        # A leaf binds every parameter in order, so position is enough.
        text = f"{tree.predicate}({', '.join(write_term(term) for _, term in tree.arguments)})"
        return scalar(text) if tree.wanted else {"not": scalar(text)}
    return {OPERATORS[type(tree)]: [_tree(child) for child in tree.children]}


def _call(name: str, arguments: CallBinding, handbook: Handbook) -> str:
    action = handbook.actions.get(name)
    inputs = action.input_names() if action else ()
    written: list[str] = []
    for at, (parameter, term) in enumerate(arguments):
        in_place = at < len(inputs) and inputs[at] == parameter
        text = write_term(term)
        written.append(text if in_place else f"{parameter}={text}")
    return scalar(f"{name}({', '.join(written)})")


def _recipe(recipe: tuple[ActionCall, ...], handbook: Handbook) -> Value:
    calls = [_recipe_call(one, handbook) for one in recipe]
    return calls[0] if len(calls) == 1 else {"all": calls}


def _recipe_call(call: ActionCall, handbook: Handbook) -> Value:
    text = _call(call.action, call.arguments, handbook)
    if not call.name and call.each is None:
        return text
    data: dict[str, Value] = {"call": text}
    if call.name:
        data["name"] = scalar(call.name)
    if call.each is not None:
        data["for_each"] = scalar(f"{call.each} as {call.element}")
    return data


def _predicate(predicate: Predicate, handbook: Handbook) -> Value:
    data: dict[str, Value] = {"says": _wording(predicate.says)}
    if predicate.says_not:
        data["says_not"] = _wording(predicate.says_not)
    if predicate.tool_free:
        data["verify"] = ARGUMENTS
    elif predicate.established_by is not None:
        call = predicate.established_by
        data["established_by"] = _call(call.action, call.arguments, handbook)
    else:
        recipes = [_recipe(one, handbook) for one in predicate.recipes]
        data["verify"] = recipes[0] if len(recipes) == 1 else {"any": recipes}
    if predicate.asks:
        data["ask"] = "[" + ", ".join(predicate.asks) + "]"
    if predicate.closed_by is not None:
        call = predicate.closed_by
        data["closed_by"] = _call(call.action, call.arguments, handbook)
    if predicate.verdict is not None:
        data["verdict"] = scalar(predicate.verdict)
    if predicate.judged_by_model:
        data["judged_by"] = "model"
    if predicate.remedy:
        data["remedy"] = _wording(predicate.remedy)
    return data


def _procedure(procedure: Procedure, handbook: Handbook) -> Value:
    data: dict[str, Value] = {}
    if procedure.says:
        data["says"] = _wording(procedure.says)
    if procedure.action != procedure.name or procedure.arguments:
        data["action"] = _call(procedure.action, procedure.arguments, handbook)
    if procedure.requires != NOTHING:
        data["requires"] = _tree(procedure.requires)
    if procedure.worded is not None:
        data["worded"] = _tree(procedure.worded)
    return data
