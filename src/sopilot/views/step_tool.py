"""The bookkeeping tool through which a model drives the machine.

In its short spelling a field says which operation is meant, and the tool has no more fields than
the programs can use. Both spellings are understood wherever the tool is offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields as fields_of
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sopilot.messages.catalogue import sentence
from sopilot.messages.scaffold import TOOL, StepTool, words
from sopilot.program.model import Act, Ask, Choose, Do, Emit, Program
from sopilot.protocols import ToolSchema
from sopilot.trace.events import TOOL_OPERATIONS, Amend, Return, ToolOperation
from sopilot.values.json import JSON, plain_mapping, without_references
from sopilot.values.text import quote_value

TOOL_NAME: Final = TOOL
SHORT_NAME: Final = "step"
STEP_NAMES: Final = frozenset({TOOL_NAME, SHORT_NAME})
"""The tool by its own name, and by the one that costs a model least to write."""

_TEXT: Final[Mapping[str, JSON]] = {"type": "string"}
_YES: Final[Mapping[str, JSON]] = {"type": "boolean"}
_VALUES: Final[Mapping[str, JSON]] = {"type": "object"}
_FIELDS: Final[Mapping[str, Mapping[str, JSON]]] = {
    "goal": _TEXT,
    "function": _TEXT,
    "arguments": _VALUES,
    "holds": _YES,
    "undecided": _YES,
    "evidence": {"type": "array", "items": _TEXT},
    "value": _TEXT,
    "option": _TEXT,
    "name": _TEXT,
    "content": _TEXT,
    "summary": _TEXT,
    "reason": _TEXT,
}
_SHORT_FIELDS: Final[Mapping[str, Mapping[str, JSON]]] = {
    "start": _TEXT,
    "arguments": _VALUES,
    "amend": _VALUES,
    "true": _TEXT,
    "false": _TEXT,
    "undecided": _TEXT,
}


@cache
def step_tool(language: str = "en", *, paper: bool = False) -> ToolSchema:
    """The tool with the operations by name. ``paper``: the seven operations and two verdicts of
    the paper's runtime."""
    table = words(language)
    operations = [item.kind for item in TOOL_OPERATIONS if not (paper and item is Amend)]
    properties: dict[str, JSON] = {"operation": {**_TEXT, "enum": operations}}
    for name, schema in _FIELDS.items():
        if paper and name == "undecided":
            continue
        key = "field_arguments_paper" if paper and name == "arguments" else f"field_{name}"
        properties[name] = {**schema, "description": table[key]}
    return ToolSchema(
        TOOL_NAME,
        table["step_tool_paper" if paper else "step_tool"],
        {
            "type": "object",
            "properties": properties,
            "required": ["operation"],
            "additionalProperties": False,
        },
    )


def short_step_tool(
    name: str, programs: Iterable[Program], language: str = "en", *, enters: bool = True
) -> ToolSchema:
    """The same for every request of a run, so that it does not disturb a prefix cache. Where the
    program ``enters`` no function by itself, the model does."""
    functions = [function for program in programs for function in program.functions.values()]
    steps = {type(step) for function in functions for step in function.steps}
    chooses = any(
        isinstance(step, Choose | Do)
        or (isinstance(step, Ask) and (step.next is not None or not isinstance(behind, Act)))
        for function in functions
        for step, behind in pairwise([*function.steps, None])
    )
    table = words(language)
    properties: dict[str, JSON] = {
        field: {**schema, "description": table[f"short_{field}"]}
        for field, schema in _SHORT_FIELDS.items()
    }
    properties |= {"complete": _YES, "fail": _YES}
    if not enters:
        properties["call"] = {**_TEXT, "description": table["field_function"]}
    if chooses or not enters:
        properties["option"] = {**_TEXT, "description": table["short_option"]}
    if Emit in steps:
        properties |= {"name": _TEXT, "content": {**_TEXT, "description": table["short_content"]}}
    return ToolSchema(name, table["step_tool_short"], {"type": "object", "properties": properties})


_OPERATIONS: Final = {item.kind: item for item in TOOL_OPERATIONS}
_ALLOWED: Final = {
    kind: [field.name for field in fields_of(item) if field.name in _FIELDS]
    for kind, item in _OPERATIONS.items()
}
"""The fields of each operation; the tool has no others."""

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
IN_PASSING: Final = ("start", "amend", "true", "false", "undecided")
"""Fields that may stand in the arguments of the tool call that follows them."""
_NUMBERED = re.compile(r"#\d{1,12}\b")
_NAMED = re.compile(r"[\w.\-]+")

_TRUTHS = {
    **dict.fromkeys(("true", "yes", "真", "是"), True),
    **dict.fromkeys(("false", "no", "假", "否"), False),
}


class _Problem(Exception):
    pass


def beyond_paper(operation: ToolOperation) -> str:
    """Why the paper's runtime doesn't have the operation, for the model; empty if it has it."""
    if isinstance(operation, Amend):
        return sentence("not-in-this-tool", name="amend")
    if isinstance(operation, Return) and operation.undecided:
        return sentence("no-undecided")
    return ""


class StepMove(NamedTuple):
    """An operation; ``about`` is the rule that a verdict was written for, by its name or by the
    number that a frame message gave it."""

    operation: ToolOperation
    about: str = ""


def parse_steps(arguments: object) -> tuple[StepMove, ...] | str:
    """The operations in the tool's arguments, or what is wrong with them, for the model.

    ``operation`` names one. Without it the fields stand for operations: ``start`` a goal,
    ``holds`` a verdict, ``true`` and ``false`` several verdicts by the numbers of a frame
    message, then ``complete`` or ``fail``.
    """
    fields = _fields(arguments)
    if isinstance(fields, str):
        return fields
    if "operation" in fields:
        spelled = [fields]
    else:
        spelled = [
            _long(name, fields)
            for name, keys in _SHORT.items()
            if any(map(fields.get, keys)) or (name == "return" and fields.get("holds") is False)
        ]
    moves: list[StepMove] = []
    for item in spelled:
        several = _several(item) if item.get("operation") == "return" else []
        if isinstance(several, str):
            return several
        for each, about in several or [(item, str(item.get("function") or ""))]:
            operation = parse_step(each)
            if isinstance(operation, str):
                return operation
            about = about.partition("(")[0].strip() if isinstance(operation, Return) else ""
            moves.append(StepMove(operation, about))
    return tuple(moves) or sentence("says-nothing")


def _several(fields: dict[str, JSON]) -> list[tuple[dict[str, JSON], str]] | str:
    """The verdicts of one call, each with what it is about, by number where that is one."""
    result: list[tuple[dict[str, JSON], str]] = []
    for word in ("true", "false", "undecided"):
        about = fields.get(word, "")
        if isinstance(about, bool):
            continue  # `undecided` of the present rule alone
        listed = about if isinstance(about, list) else [about]
        if not all(type(item) in (int, str) for item in listed):
            return sentence("not-numbers", name=word)
        names = " ".join(map(str, listed)).replace(",", " ").split()
        result += [({"operation": "return", "holds": word}, name) for name in names]
    return sorted(result, key=lambda each: (len(each[1]), each[1]))


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
            return sentence("not-json")
    if not isinstance(arguments, Mapping):
        return sentence("no-operation")
    argument = without_references(plain_mapping(arguments))
    return {key: value for key, value in argument.items() if value is not None}


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
        return sentence("unknown-operation", names=", ".join(_ALLOWED))
    try:
        verdict: dict[str, Any] = _verdict(fields) if name == "return" else {}
        others = {key: _read(key, fields.get(key)) for key in _ALLOWED[name] if key not in verdict}
    except _Problem as problem:
        return sentence("in-operation", operation=name, problem=problem.args[0])
    return _OPERATIONS[name](**verdict, **others)


def _read(key: str, value: JSON) -> Any:
    match key:
        case "arguments":
            return _object(value)
        case "evidence":
            return _citations(value)
        case "option":
            return _option(value)
        case "value" | "content":
            return value
    text = "" if value is None else value
    if not isinstance(text, str):
        raise _Problem(sentence("not-a-string", name=key))
    if not text and key in ("goal", "name"):
        raise _Problem(sentence("missing-key", name=key))
    return None if key == "function" and not text else text


def _object(value: JSON) -> Mapping[str, JSON]:
    if value is None:
        return {}
    if isinstance(value, str):
        # Some models write the inner object as JSON text too.
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError):
            raise _Problem(sentence("arguments-not-an-object")) from None
    if not isinstance(value, dict):
        raise _Problem(sentence("arguments-not-an-object"))
    return plain_mapping(value)


def _verdict(fields: Mapping[str, JSON]) -> dict[str, bool | None]:
    """``holds`` and whether it is undecided; saying both is saying nothing."""
    holds = fields.get("holds")
    undecided = _truth(fields.get("undecided")) or False
    if isinstance(holds, str) and holds.lower() == "undecided":
        return {"holds": None, "undecided": True}
    if undecided and holds is not None:
        raise _Problem(sentence("holds-and-undecided"))
    return {"holds": _truth(holds), "undecided": undecided}


def _truth(value: JSON) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    raise _Problem(sentence("holds-not-a-truth"))


def _option(value: JSON) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value or None
    raise _Problem(sentence("not-a-string", name="option"))


def _citations(value: JSON) -> tuple[str, ...]:
    items = [] if value is None else value if isinstance(value, list) else [value]
    cited = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise _Problem(sentence("evidence-not-a-list"))
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
        raise _Problem(sentence("evidence-not-cited", text=quote_value(text, 40)))
    return names


_SHORT_WORDS: Final[Mapping[str, str]] = {
    "return": "verdict",
    "select_branch": "option",
    "emit_artifact": "name",
}
"""The words for operations where the tool has no names for them."""


def did(kind: str, tool: StepTool) -> str:
    """An operation by a name that the tool on offer has."""
    return _SHORT_WORDS.get(kind, kind) if tool.short else kind
