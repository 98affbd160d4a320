"""The one tool through which the executor drives the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sopilot.language.render import words
from sopilot.language.render.phrases import said_in
from sopilot.language.render.values import quote_value
from sopilot.runtime.vm.machine import Outcome
from sopilot.runtime.vm.operations import (
    TOOL_OPERATIONS,
    Amend,
    Call,
    Complete,
    EmitArtifact,
    Fail,
    Return,
    SelectBranch,
    Start,
    ToolOperation,
)
from sopilot.runtime.vm.values import JSON, Fields, plain_mapping, without_references

TOOL_NAME: Final = "pg_program_step"
SHORT_NAME: Final = "step"
STEP_NAMES: Final = frozenset({TOOL_NAME, SHORT_NAME})
"""The tool by its own name, and by the one that costs a model least to write."""


def step_description(language: str = "en") -> str:
    return words(language)["step_tool"]


def step_schema(language: str = "en") -> dict[str, Any]:
    """The tool's fields; only their descriptions depend on the language."""
    table = words(language)
    described: dict[str, dict[str, JSON]] = {
        "goal": {"type": "string"},
        "function": {"type": "string"},
        "arguments": {"type": "object"},
        "holds": {"type": "boolean"},
        "undecided": {"type": "boolean"},
        "evidence": {"type": "array", "items": {"type": "string"}},
        "value": {"type": "string"},
        "option": {"type": "string"},
        "name": {"type": "string"},
        "content": {"type": "string"},
        "summary": {"type": "string"},
        "reason": {"type": "string"},
    }
    return {
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": [one.kind for one in TOOL_OPERATIONS]},
            **{
                name: {**schema, "description": table[f"field_{name}"]}
                for name, schema in described.items()
            },
        },
        "required": ["operation"],
        "additionalProperties": False,
    }


_ALLOWED: dict[str, tuple[str, ...]] = {
    "start": ("goal", "arguments"),
    "amend": ("arguments",),
    "call": ("function", "arguments"),
    "return": ("holds", "undecided", "evidence", "value", "arguments"),
    "select_branch": ("option",),
    "emit_artifact": ("name", "content"),
    "complete": ("summary",),
    "fail": ("reason",),
}
_SHORT: dict[str, tuple[str, ...]] = {
    "amend": ("amend",),
    "start": ("start",),
    "call": ("call",),
    "return": ("holds", "undecided", "true", "false"),
    "select_branch": ("option",),
    "emit_artifact": ("name",),
    "complete": ("complete",),
    "fail": ("fail",),
}
"""The operations by the fields that stand for them where none is named, in the order in which
one call does several."""
IN_PASSING: Final = ("start", "true", "false", "undecided")
"""Fields that may stand in the arguments of the tool call that follows them."""
_NUMBERED = re.compile(r"#\d{1,12}\b")
_NAMED = re.compile(r"[\w.\-]+")
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "真", "是"), True),
    **dict.fromkeys(("false", "no", "假", "否"), False),
}


class _Problem(Exception):
    pass


class StepMove(NamedTuple):
    """An operation; ``about`` is the rule that a verdict was written for, by its name or by the
    number that a slot gave it."""

    operation: ToolOperation
    about: str = ""


def parse_steps(arguments: object) -> tuple[StepMove, ...] | str:
    """The operations in the tool's arguments, or what is wrong with them, for the model.

    One is named by ``operation``. Without that name the fields say it: ``start`` a goal,
    ``holds`` a verdict, ``true`` and ``false`` several of them by the numbers of a slot, then
    ``complete`` or ``fail``.
    """
    fields = _fields(arguments)
    if isinstance(fields, str):
        return fields
    if "operation" in fields:
        spelled = [fields]
    else:
        done = [name for name, keys in _SHORT.items() if any(map(fields.get, keys))]
        if fields.get("holds") is False and "return" not in done:
            done.append("return")
            done.sort(key=list(_SHORT).index)
        spelled = [_long(name, fields) for name in done]
    moves: list[StepMove] = []
    for one in spelled:
        several = _several(one) if one.get("operation") == "return" else []
        if isinstance(several, str):
            return several
        for each, about in several or [(one, str(one.get("function") or ""))]:
            operation = parse_step(each)
            if isinstance(operation, str):
                return operation
            about = about.partition("(")[0].strip() if isinstance(operation, Return) else ""
            moves.append(StepMove(operation, about))
    return tuple(moves) or "say what to do: `start`, `holds`, `complete` or `fail`"


def _several(fields: dict[str, JSON]) -> list[tuple[dict[str, JSON], str]] | str:
    """The verdicts of one call, each with what it is about, by number where that is one."""
    found: list[tuple[dict[str, JSON], str]] = []
    for word in ("true", "false", "undecided"):
        about = fields.get(word, "")
        if isinstance(about, bool):
            continue  # `undecided` of the present rule alone
        listed = about if isinstance(about, list) else [about]
        if not all(type(one) in (int, str) for one in listed):
            return f"`{word}` must be the numbers of `judge`, such as `1 2`"
        names = " ".join(map(str, listed)).replace(",", " ").split()
        found += [({"operation": "return", "holds": word}, name) for name in names]
    return sorted(found, key=lambda each: (len(each[1]), each[1]))


def _long(name: str, fields: dict[str, JSON]) -> dict[str, JSON]:
    """The operation as it is spelled with its name."""
    renamed = {"start": "goal", "call": "function", "amend": "arguments"}
    spelled = {key: value for key, value in fields.items() if key not in _SHORT}
    if name == "return":
        spelled.setdefault("function", "")
    elif name in renamed:
        spelled[renamed[name]] = fields[name]
    return {**spelled, "operation": name}


def _fields(arguments: object) -> dict[str, JSON] | str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return "the arguments are not JSON"
    if not isinstance(arguments, Mapping):
        return "the arguments must be an object with `operation`"
    given = without_references(plain_mapping(arguments))
    return {key: value for key, value in given.items() if value is not None}


def parse_step(arguments: object) -> ToolOperation | str:
    """The one operation that the tool's arguments name, or what is wrong with them.

    Accepts the object or its JSON text. Fields that other operations use are
    ignored: models fill in what a schema offers.
    """
    fields = _fields(arguments)
    if isinstance(fields, str):
        return fields
    name = fields.get("operation")
    if not isinstance(name, str) or name not in _ALLOWED:
        return f"`operation` must be one of {', '.join(_ALLOWED)}"
    try:
        return _parse(name, {key: fields[key] for key in _ALLOWED[name] if key in fields})
    except _Problem as problem:
        return f"{name}: {problem}"


def _parse(name: str, fields: dict[str, JSON]) -> ToolOperation:
    match name:
        case "start":
            return Start(_required(fields, "goal"), _object(fields))
        case "amend":
            return Amend(_object(fields))
        case "call":
            return Call(_text(fields, "function") or None, _object(fields))
        case "return":
            holds, undecided = _verdict(fields)
            return Return(
                holds,
                _citations(fields.get("evidence")),
                fields.get("value"),
                _object(fields),
                undecided,
            )
        case "select_branch":
            return SelectBranch(_option(fields.get("option")))
        case "emit_artifact":
            return EmitArtifact(_required(fields, "name"), fields.get("content"))
        case "complete":
            return Complete(_text(fields, "summary"))
        case _:
            return Fail(_text(fields, "reason"))


def _required(fields: Mapping[str, JSON], key: str) -> str:
    text = _text(fields, key)
    if not text:
        raise _Problem(f"`{key}` is missing")
    return text


def _text(fields: Mapping[str, JSON], key: str) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise _Problem(f"`{key}` must be a string")
    return value


def _object(fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    value = fields.get("arguments", {})
    if isinstance(value, str):
        # Some models write the inner object as JSON text too.
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError):
            raise _Problem("`arguments` must be an object") from None
    if not isinstance(value, dict):
        raise _Problem("`arguments` must be an object")
    return plain_mapping(value)


def _verdict(fields: Mapping[str, JSON]) -> tuple[bool | None, bool]:
    """``holds`` and whether it is undecided; saying both is saying nothing."""
    holds = fields.get("holds")
    undecided = _truth(fields.get("undecided")) or False
    if isinstance(holds, str) and holds.lower() == "undecided":
        return None, True
    if undecided and holds is not None:
        raise _Problem("give `holds` or `undecided`, not both")
    return _truth(holds), undecided


def _truth(value: JSON) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    raise _Problem("`holds` must be true or false")


def _option(value: JSON) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value or None
    raise _Problem("`option` must be a string")


def _citations(value: JSON) -> tuple[str, ...]:
    items = [] if value is None else value if isinstance(value, list) else [value]
    cited = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise _Problem("`evidence` must be a list of strings such as `#12`")
        cited += [f"#{item}"] if isinstance(item, int) else _cited_in(item)
    return tuple(dict.fromkeys(cited))


def _cited_in(text: str) -> list[str]:
    """The results that a text names, as `#38, #41` does, or the tools; other words bind nothing
    and are no citation."""
    numbers = _NUMBERED.findall(text)
    if numbers:
        return numbers
    names = [name.strip("`'\"()") for name in re.split(r"[\s,;]+", text) if name]
    if not all(_NAMED.fullmatch(name) for name in names):
        raise _Problem(f"`evidence` must cite results as `#12`, not {quote_value(text, 40)}")
    return names


# --- the answer -----------------------------------------------------------------------


def answer_text(outcome: Outcome, language: str = "en", *, terse: bool = False) -> str:
    """What the model reads back: what was done, where the cursor is, what fits next. ``terse``
    where a slot shows the position anyway."""
    table = words(language)
    answer = outcome.answer
    if outcome.accepted:
        first = table["done"].format(did=answer["did"] or table["nothing_to_do"])
        if terse:
            return first
    else:
        problem = said_in(answer["problem"], language)
        first = table["nothing_done"].format(problem=problem.rstrip("."))
    lines = [first]
    lines.extend(
        table["passed"].format(label=passed["label"], ground=said_in(passed["ground"], language))
        for passed in answer.get("passed", ())
    )
    if answer.get("resumed"):
        lines.append(table["back_in"].format(goal=answer["goal"]))
    if answer["process"] is None:
        lines.append(table["no_process"])
    else:
        lines.append(table["now_at"].format(place=answer["frame"]))
    shapes = list(dict.fromkeys(_shape(shape, table) for shape in answer["fits"]))
    shown = shapes if len(shapes) <= 8 else [*shapes[:8], "…"]
    lines.append(table["fits"].format(shapes=table["separator"].join(shown)))
    return "\n".join(lines)


def _shape(shape: Fields, table: Mapping[str, str]) -> str:
    operation = shape["operation"]
    missing = shape.get("missing", [])
    if operation == "domain_call":
        call = f"{shape['action']}{_values(shape.get('arguments', {}))}"
        text = table["fits_tool"].format(call=call)
    elif operation == "ask_user":
        return table["fits_ask"].format(names=", ".join(shape["wants"]))
    elif operation == "start":
        call = f"{shape['goal']}({', '.join(shape['arguments'])})"
        return table["fits_start"].format(call=call)
    elif operation == "call":
        call = f"{shape['function']}{_values(shape['arguments'])}"
        text = table["fits_call"].format(call=call)
    elif operation == "return":
        holds = shape.get("holds")
        return "return holds=" + ("true|false" if holds is None else str(holds).lower())
    else:
        text = " ".join(
            [operation, *(str(shape[key]) for key in ("option", "name") if key in shape)]
        )
    return text + (table["fits_find"].format(names=", ".join(missing)) if missing else "")


def _values(values: Mapping[str, JSON]) -> str:
    return (
        "(" + ", ".join(f"{name}={quote_value(value, 40)}" for name, value in values.items()) + ")"
    )
