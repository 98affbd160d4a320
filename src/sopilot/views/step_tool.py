"""The bookkeeping tool through which a model drives the machine.

In its short spelling a field says which operation is meant, and the tool has no more fields than
the programs can use. Both spellings are understood wherever the tool is offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sopilot.machine.machine import Outcome
from sopilot.messages.catalogue import sentence, worded
from sopilot.messages.scaffold import LONG_TOOL, StepTool, words
from sopilot.program.model import Act, Ask, Choose, Do, Emit, Program
from sopilot.protocols import ToolSchema
from sopilot.trace.events import (
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
from sopilot.values.json import JSON, Fields, plain_mapping, without_references
from sopilot.values.text import quote_value

_TEXT: Final[Mapping[str, JSON]] = {"type": "string"}
_YES: Final[Mapping[str, JSON]] = {"type": "boolean"}
_VALUES: Final[Mapping[str, JSON]] = {"type": "object"}


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
    properties = _always(table)
    if not enters:
        properties["call"] = {**_TEXT, "description": table["field_function"]}
    if chooses or not enters:
        properties["option"] = {"type": "string", "description": table["short_option"]}
    if Emit in steps:
        properties |= {"name": _TEXT, "content": {**_TEXT, "description": table["short_content"]}}
    return ToolSchema(name, table["step_tool_short"], {"type": "object", "properties": properties})


def _always(table: Mapping[str, str]) -> dict[str, JSON]:
    return {
        "start": {**_TEXT, "description": table["short_start"]},
        "arguments": {**_VALUES, "description": table["short_arguments"]},
        "amend": {**_VALUES, "description": table["short_amend"]},
        "true": {**_TEXT, "description": table["short_true"]},
        "false": {**_TEXT, "description": table["short_false"]},
        "undecided": {**_TEXT, "description": table["short_undecided"]},
        "complete": _YES,
        "fail": _YES,
    }


TOOL_NAME: Final = "pg_program_step"
SHORT_NAME: Final = "step"
STEP_NAMES: Final = frozenset({TOOL_NAME, SHORT_NAME})
"""The tool by its own name, and by the one that costs a model least to write."""


def step_description(language: str = "en", *, paper: bool = False) -> str:
    return words(language)["step_tool_paper" if paper else "step_tool"]


def step_schema(language: str = "en", *, paper: bool = False) -> dict[str, Any]:
    """The tool's fields; only their descriptions depend on the language. ``paper``: the seven
    operations and two verdicts of the paper's runtime."""
    table = words(language)
    own = {"arguments": table["field_arguments_paper"]} if paper else {}
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
            "operation": {
                "type": "string",
                "enum": [item.kind for item in TOOL_OPERATIONS if not paper or item is not Amend],
            },
            **{
                name: {**schema, "description": own.get(name, table[f"field_{name}"])}
                for name, schema in described.items()
                if not paper or name != "undecided"
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
    """What the paper's runtime lacks of an operation, for the model; empty if it has it."""
    if isinstance(operation, Amend):
        return sentence("not-in-this-tool", name="amend")
    if isinstance(operation, Return) and operation.undecided:
        return sentence("no-undecided")
    return ""


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
        return _parse(name, {key: fields[key] for key in _ALLOWED[name] if key in fields})
    except _Problem as problem:
        return sentence("in-operation", operation=name, problem=problem.args[0])


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
        raise _Problem(sentence("missing-key", name=key))
    return text


def _text(fields: Mapping[str, JSON], key: str) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise _Problem(sentence("not-a-string", name=key))
    return value


def _object(fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    value = fields.get("arguments", {})
    if isinstance(value, str):
        # Some models write the inner object as JSON text too.
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError):
            raise _Problem(sentence("arguments-not-an-object")) from None
    if not isinstance(value, dict):
        raise _Problem(sentence("arguments-not-an-object"))
    return plain_mapping(value)


def _verdict(fields: Mapping[str, JSON]) -> tuple[bool | None, bool]:
    """``holds`` and whether it is undecided; saying both is saying nothing."""
    holds = fields.get("holds")
    undecided = _truth(fields.get("undecided")) or False
    if isinstance(holds, str) and holds.lower() == "undecided":
        return None, True
    if undecided and holds is not None:
        raise _Problem(sentence("holds-and-undecided"))
    return _truth(holds), undecided


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
    raise _Problem("`option` must be a string")


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
"""What was done, where the tool has no names for operations."""


def did(kind: str, tool: StepTool) -> str:
    """An operation by a name that the tool on offer has."""
    return _SHORT_WORDS.get(kind, kind) if tool.short else kind


def answer_text(
    outcome: Outcome, language: str = "en", *, terse: bool = False, tool: StepTool = LONG_TOOL
) -> str:
    """What the model reads back: what was done, where the cursor is, what fits next. ``terse``
    where a slot shows the position anyway."""
    table = words(language)
    answer = outcome.answer
    if outcome.accepted:
        done = did(answer["did"], tool) if answer["did"] else table["nothing_to_do"]
        first = table["done"].format(did=done)
        if terse:
            return first
    else:
        problem = answer["problem"]
        if tool.short:
            problem = re.sub(r"`(\w+)`", lambda named: f"`{did(named[1], tool)}`", problem)
        problem = worded(problem, language)
        first = table["nothing_done"].format(problem=problem.rstrip("."))
    lines = [first]
    lines.extend(
        table["passed"].format(label=passed["label"], ground=worded(passed["ground"], language))
        for passed in answer.get("passed", ())
    )
    if answer.get("resumed"):
        lines.append(table["back_in"].format(goal=answer["goal"]))
    if answer["process"] is None:
        lines.append(table["no_process"])
    else:
        lines.append(table["now_at"].format(place=answer["frame"]))
    fitting = answer["fits"]
    if {"ask_user", "domain_call"} <= {shape["operation"] for shape in fitting}:
        # What is asked for is given with the call: going on without it would look like a way by.
        fitting = [shape for shape in fitting if shape["operation"] != "select_branch"]
    shapes = list(dict.fromkeys(_shape(shape, table, tool) for shape in fitting))
    shown = shapes if len(shapes) <= 8 else [*shapes[:8], "…"]
    lines.append(table["fits"].format(shapes=table["separator"].join(shown)))
    return "\n".join(lines)


def _shape(shape: Fields, table: Mapping[str, str], tool: StepTool) -> str:
    operation = shape["operation"]
    missing = shape.get("missing", [])
    if tool.short and operation not in ("domain_call", "ask_user"):
        return _short_shape(shape, table)
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


def _short_shape(shape: Fields, table: Mapping[str, str]) -> str:
    """An operation by the fields that stand for it."""
    match shape["operation"]:
        case "start":
            return f"`start`: {json.dumps(shape['goal'])}"
        case "call" if shape.get("missing"):
            return (
                f"`amend`: {{{', '.join(f'{json.dumps(item)}: …' for item in shape['missing'])}}}"
            )
        case "call":
            return f"`call`: {json.dumps(shape['function'])}"
        case "return":
            holds = shape.get("holds")
            sides = ("true", "false") if holds is None else (str(holds).lower(),)
            return table["or"].join(f'`{side}`: "1"' for side in sides)
        case "select_branch":
            return f"`option`: {json.dumps(shape['option'])}"
        case "emit_artifact":
            return f"`name`: {json.dumps(shape['name'])}, `content`"
        case operation:
            return f"`{operation}`: true"


def _values(values: Mapping[str, JSON]) -> str:
    return (
        "(" + ", ".join(f"{name}={quote_value(value, 40)}" for name, value in values.items()) + ")"
    )
