"""The program artifact: YAML out, YAML in, and its hash.

A program can be written by hand in the same form::

    sopilot_program: 1
    entry: close_ticket
    functions:
      close_ticket:
        kind: process                      # process, group, gate or rule
        parameters: [ticket]
        steps:
          - step: open                     # the label
            call: ticket_open              # or branch, choose, act, ask, do, emit,
            with: {ticket: $ticket}        #    return, complete, fail
            bind: is_open                  # the slot that holds the result
            unmet: refuse                  # without `met` and `unmet`: the next step
          - step: close
            act: close_ticket
            with: {ticket: $ticket, note: "?note"}
            goal: true
          - step: done
            complete: The ticket is closed.
          - step: refuse
            fail: Say that the ticket is not open.
            starts: hand_over              # the goal that follows, if one does
      ticket_open:
        kind: rule
        parameters: [ticket]
        predicate: ticket_open
        steps:
          - {step: read, act: read_ticket, with: {id: $ticket}}
          - {step: judge, return: null}    # null: judged from the evidence

``$name`` is a value of the function, ``$call.key`` a path into an earlier answer of the recipe
(``$call.`` is all of it) and ``?name`` a value that isn't known yet. ``$$`` and ``??`` start a text
with that sign. An ``act`` may ``name`` its answer and be made ``for_each: call.list as element``. A
condition is a slot, ``not slot``, ``true``, ``false``, ``{all: […]}`` or ``{any: […]}``.

One table of fields per kind of part drives reading, key checks and writing. The same program
always gives the same bytes. Reading is strict and bounded, and every mistake has a place.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sopilot.handbook import fields
from sopilot.handbook.fields import REQUIRED, Entry
from sopilot.handbook.grammar import Translated
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.handbook.requirements import Constant, Path, Scalar
from sopilot.handbook.yaml import Value, child, emit, parse_nodes
from sopilot.messages.diagnostic import Diagnostic, DiagnosticCollector, Place, Positioned
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program import model
from sopilot.program.model import (
    FORMAT,
    Act,
    ActionFacts,
    Always,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Guarded,
    Holds,
    Local,
    Option,
    Prerequisite,
    Program,
    ReturnStep,
    Some,
    Source,
    Step,
    Unknown,
)
from sopilot.program.verifier import WHOLE, verify_program

LARGEST_PROGRAM = 20_000_000
"""In characters. A program is many times as long as its handbook."""

# --- single values ------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_$](?:[A-Za-z0-9_$./ -]*[A-Za-z0-9_$./])?")
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LARGEST = 10**300


def text_to_yaml(text: str) -> str:
    """Plain if every YAML reader takes it for text, else double-quoted with JSON's escapes.
    Translations become a mapping."""
    if isinstance(text, Translated):
        return _flow({language: text_to_yaml(item) for language, item in text.texts.items()})
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    if _HALF_PAIR.search(text):
        raise _unwritable(f"a string contains half a surrogate pair: {ascii(text)[:80]}")
    return _escaped(json.dumps(text, ensure_ascii=False))


def scalar_to_yaml(value: Scalar) -> str:
    if isinstance(value, str):
        return text_to_yaml(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _unwritable("a number is infinite or not a number")
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise _unwritable("a whole number has too many digits")
    return json.dumps(value)


def json_to_yaml(value: object) -> str:
    """One line of JSON with sorted keys, which is YAML too."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _unwritable(f"a schema is not JSON: {error}") from error
    if _HALF_PAIR.search(text):
        raise _unwritable("a schema contains half a surrogate pair")
    return _escaped(text)


def _escaped(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _unwritable(message: str) -> UserMistake:
    return mistake("unwritable-value", message, help="use a plain JSON value")


def _flow(value: Value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else value


def _argument_to_yaml(argument: CallArgument) -> str:
    if isinstance(argument, Local):
        return text_to_yaml("$" + argument.name)
    if isinstance(argument, Unknown):
        return text_to_yaml("?" + argument.name)
    if isinstance(argument, Path):
        return text_to_yaml("$" + _path_to_text(argument))
    value = argument.value
    if isinstance(value, str) and value[:1] in ("$", "?"):
        value = value[0] + value
    return scalar_to_yaml(value)


def _argument_from_scalar(value: Scalar) -> CallArgument:
    if isinstance(value, str) and value[:1] in ("$", "?"):
        if value[1:2] == value[0]:
            return Constant(value[1:])
        if value[0] == "?":
            return Unknown(value[1:])
        return path_from_text(value[1:]) or Local(value[1:])
    return Constant(value)


_PATH = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\.|(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+)")
_PATH_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


def _path_to_text(path: Path) -> str:
    """``call.key[0]``; a whole answer ends with a dot, which tells it from a local."""
    return str(path) if path.steps else f"{path.root}."


def path_from_text(text: str) -> Path | None:
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    steps = tuple(key or int(position) for key, position in _PATH_STEP.findall(match[2]))
    return Path(match[1], steps)


def _json_of(node: Node) -> object:
    if isinstance(node, ListNode):
        return [_json_of(item) for item in node.items]
    if isinstance(node, MapNode):
        return {key.text: _json_of(value) for key, value in node.pairs}
    return node.value


# --- kinds of field -----------------------------------------------------------------------


class Kind(NamedTuple):
    """How a field is read and written. ``empty`` stands for a required field that is missing."""

    read: Callable[[DiagnosticCollector, Node, str], Any]
    write: Callable[[Any], Value]
    empty: Any = ""


def _list_of(kind: Kind, what: str = "", *, inline: bool = False) -> Kind:
    """``what`` names an entry in messages. Unreadable entries are left out."""

    def read(report: DiagnosticCollector, node: Node, name: str) -> tuple[Any, ...]:
        if not isinstance(node, ListNode):
            fields.wrong(report, node, name, "a list")
            return ()
        values = [kind.read(report, item, what or f"an entry of {name}") for item in node.items]
        return tuple(value for value in values if value is not None)

    def write(values: Iterable[Any]) -> Value:
        written = [kind.write(value) for value in values]
        return _flow(written) if inline else written

    return Kind(read, write, ())


def _mapping_of(kind: Kind, what: str = "") -> Kind:
    """A mapping whose keys the author chose."""

    def read(report: DiagnosticCollector, node: Node, name: str) -> dict[str, Any]:
        return {
            key.text: kind.read(report, value, f"{what}`{key.text}`")
            for key, value in fields.entries(report, node, name)
        }

    def write(values: Mapping[str, Any]) -> Value:
        return {text_to_yaml(name): kind.write(value) for name, value in values.items()}

    return Kind(read, write, {})


def _or_null(kind: Kind, null: Any) -> Kind:
    """``null`` is the value that a null in the file stands for."""

    def read(report: DiagnosticCollector, node: Node, what: str) -> Any:
        is_null = isinstance(node, ScalarNode) and node.value is None
        return null if is_null else kind.read(report, node, what)

    return Kind(read, kind.write)


def _read_whole(report: DiagnosticCollector, node: Node, what: str) -> int:
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    fields.wrong(report, node, what, "a whole number")
    return 0


def _read_version(report: DiagnosticCollector, node: Node, what: str) -> int:
    version = node.value if isinstance(node, ScalarNode) else None
    if type(version) is int and version != FORMAT:
        message = f"program format {version} is not known"
        report.error("unknown-format", message, node, f"this version reads format {FORMAT}")
    return _read_whole(report, node, what)


def _read_constant(report: DiagnosticCollector, node: Node, what: str) -> object:
    return fields.constant(report, node, what) if isinstance(node, ScalarNode) else _json_of(node)


def _write_constant(value: Any) -> str:
    return json_to_yaml(value) if isinstance(value, list | dict) else scalar_to_yaml(value)


def _read_schema(report: DiagnosticCollector, node: Node, what: str) -> Mapping[str, object]:
    """A bare word is a type."""
    value = _json_of(node)
    if isinstance(value, str):
        return {"type": value}
    if isinstance(value, dict):
        return value
    fields.wrong(report, node, what, "a type or a JSON Schema")
    return {}


def _write_schema(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if len(schema) == 1 and isinstance(kind, str):
        return text_to_yaml(kind)
    return json_to_yaml(schema)


def _read_object_schema(report: DiagnosticCollector, node: Node, what: str) -> object:
    if isinstance(node, MapNode):
        return _json_of(node)
    fields.wrong(report, node, what, "a JSON Schema object")
    return None


def _read_call_arguments(report: DiagnosticCollector, node: Node, what: str) -> CallArguments:
    return tuple(
        (key.text, _argument_from_scalar(fields.constant(report, value, f"`{key.text}`")))
        for key, value in fields.entries(report, node, what)
    )


def _read_arguments(report: DiagnosticCollector, node: Node, what: str) -> CallArguments:
    """The arguments of a function, which can't be paths into answers."""
    arguments = _read_call_arguments(report, node, what)
    for name, argument in arguments:
        if isinstance(argument, Path):
            fields.wrong(report, node, f"`{name}`", "a value, not a place in an answer")
    return tuple(item for item in arguments if not isinstance(item[1], Path))


def _write_arguments(arguments: CallArguments) -> str:
    return _flow({text_to_yaml(name): _argument_to_yaml(value) for name, value in arguments})


def _read_each(report: DiagnosticCollector, node: Node, what: str) -> tuple[Path | None, str]:
    where, _, element = fields.text(report, node, what).partition(" as ")
    path = path_from_text(where)
    if path is None or not element:
        fields.wrong(report, node, what, "a list like `read.items as item`")
    return path, element


def _write_each(each: tuple[Path, str]) -> str:
    return text_to_yaml(f"{_path_to_text(each[0])} as {each[1]}")


def _read_condition(report: DiagnosticCollector, node: Node, what: str) -> Condition:
    """The parser bounds the depth of nodes, so this recursion is bounded too."""
    if isinstance(node, ScalarNode):
        value = node.value
        if isinstance(value, bool):
            return Always(value)
        if isinstance(value, str):
            slot = value.removeprefix("not ")
            return Holds(slot, slot == value)
    elif isinstance(node, MapNode) and len(node.pairs) == 1:
        key, inner = node.pairs[0]
        if key.text in ("all", "any") and isinstance(inner, ListNode):
            parts = tuple(_read_condition(report, part, what) for part in inner.items)
            return Every(parts) if key.text == "all" else Some(parts)
    expected = "a slot, `not slot`, `true`, `false`, `{all: […]}` or `{any: […]}`"
    fields.wrong(report, node, "a condition", expected)
    return Always(True)


def _write_condition(condition: Condition | None) -> str:
    if condition is None:
        return "null"
    if isinstance(condition, Holds):
        return text_to_yaml(condition.slot if condition.wanted else f"not {condition.slot}")
    if isinstance(condition, Always):
        return "true" if condition.value else "false"
    word = "all" if isinstance(condition, Every) else "any"
    return _flow({word: [_write_condition(part) for part in condition.conditions]})


def _read_kind(report: DiagnosticCollector, node: Node, what: str) -> model.Kind:
    word = fields.text(report, node, what)
    if word in set(model.Kind):
        return model.Kind(word)
    kinds = ", ".join(f"`{kind}`" for kind in model.Kind)
    fields.wrong(report, node, what, f"one of {kinds}")
    return model.Kind.RULE


def _read_judged_by(report: DiagnosticCollector, node: Node, what: str) -> bool:
    if fields.text(report, node, what) != "model":
        fields.wrong(report, node, what, "`model`")
    return True


def _read_step(report: DiagnosticCollector, node: Node, what: str) -> Step | None:
    """The step, with harmless values in place of mistakes; ``None`` if its kind is unclear."""
    if not isinstance(node, MapNode):
        fields.wrong(report, node, "a step", "a mapping")
        return None
    verbs = [key.text for key, _ in node.pairs if key.text in _BY_VERB]
    if len(verbs) != 1:
        seen = " and ".join(f"`{verb}`" for verb in verbs) or "none"
        names = ", ".join(f"`{verb}`" for verb in _BY_VERB)
        message = f"a step does exactly one thing, found {seen}"
        report.error("wrong-step", message, node, f"use one of {names}")
        return None
    step: Step = _read(report, node, _BY_VERB[verbs[0]], f"a `{verbs[0]}` step")
    return step


def _read_act(report: DiagnosticCollector, node: Node, what: str) -> Act | None:
    step = _read_step(report, node, what)
    if step is None or isinstance(step, Act):
        return step
    fields.wrong(report, node, what, "an `act` step")
    return None


def _write_step(step: Step) -> dict[str, Value]:
    return _written(step, _BY_TYPE[type(step)])


TEXT = Kind(fields.text, text_to_yaml)
WORDING = Kind(fields.worded, text_to_yaml)
CLOSING = _or_null(WORDING, "")
FLAG = Kind(fields.flag, scalar_to_yaml, False)
WHOLE_NUMBER = Kind(_read_whole, scalar_to_yaml, 0)
VERSION = Kind(_read_version, scalar_to_yaml, FORMAT)
TEXTS = _list_of(TEXT)
NAMES = _list_of(TEXT, inline=True)
CONSTANTS = _mapping_of(Kind(_read_constant, _write_constant))
SCHEMAS = _mapping_of(Kind(_read_schema, _write_schema))
OBJECT_SCHEMA = Kind(_read_object_schema, json_to_yaml)
ARGUMENTS = Kind(_read_arguments, _write_arguments)
CALL_ARGUMENTS = Kind(_read_call_arguments, _write_arguments)
EACH = Kind(_read_each, _write_each)
CONDITION = Kind(_read_condition, _write_condition, Always(True))
OPTIONAL_CONDITION = _or_null(CONDITION, None)
FUNCTION_KIND = Kind(_read_kind, str, model.Kind.RULE)
JUDGED_BY = Kind(_read_judged_by, lambda _: "model")
STEPS = _list_of(Kind(_read_step, _write_step))
ACT = Kind(_read_act, lambda act: _flow(_write_step(act)))
FALLBACKS = _list_of(_list_of(ACT, "a part of a fallback", inline=True), "a fallback")

# --- tables -------------------------------------------------------------------------------


class Table(NamedTuple):
    """An entry with two attributes reads and writes a pair of values."""

    make: Callable[..., Any]
    entries: tuple[Entry[Kind], ...]


def _table(part: type[Any], *entries: Entry[Kind]) -> Table:
    return Table(part, fields.filled(part, entries))


def _read(
    report: DiagnosticCollector,
    node: Node,
    table: Table,
    what: str,
    at: Positioned | None = None,
    **values: object,
) -> Any:
    """Read a part. ``at`` is where a missing field is reported; ``values`` are read already."""
    result = fields.fields(report, node, [entry.key for entry in table.entries], what)
    for entry in table.entries:
        if entry.key not in result and entry.default is REQUIRED and isinstance(node, MapNode):
            fields.missing(report, at or node, entry.key, what)
        if entry.attribute in values:
            continue
        if entry.key in result:
            value = entry.kind.read(report, result[entry.key].value, f"`{entry.key}`")
        else:
            value = entry.kind.empty if entry.default is REQUIRED else entry.default
        names = entry.attribute.split()
        values.update(zip(names, value if len(names) > 1 else (value,), strict=True))
    return table.make(**values)


def _written(part: Any, table: Table) -> dict[str, Value]:
    """The fields that aren't at their defaults, in the order of the table."""
    written: dict[str, Value] = {}
    for entry in table.entries:
        values = tuple(getattr(part, name) for name in entry.attribute.split())
        value = values if len(values) > 1 else values[0]
        if entry.default is REQUIRED or value != entry.default:
            written[entry.key] = entry.kind.write(value)
    return written


def _part(table: Table, *, inline: bool = True) -> Kind:
    return Kind(
        lambda report, node, what: _read(report, node, table, what),
        lambda part: _flow(_written(part, table)) if inline else _written(part, table),
    )


_LABEL = Entry("step", TEXT, "label")
_SAYS = Entry("says", WORDING)
_NEXT = Entry("next", TEXT)

OPTION = _table(Option, Entry("name", TEXT), Entry("to", TEXT, "target"), _SAYS)


def _step(part: type[Any], verb: str, kind: Kind, attribute: str, *entries: Entry[Kind]) -> Table:
    return _table(part, _LABEL, Entry(verb, kind, attribute, REQUIRED), *entries)


_STEP_TABLES = (
    _step(
        Check,
        "call",
        TEXT,
        "function",
        Entry("with", ARGUMENTS, "arguments", ()),
        Entry("bind", TEXT, "slot"),
        Entry("wanted", FLAG),
        Entry("met", TEXT),
        Entry("unmet", TEXT),
        _SAYS,
    ),
    _step(Branch, "branch", CONDITION, "when", Entry("then", TEXT), Entry("otherwise", TEXT)),
    _step(
        Choose,
        "choose",
        WORDING,
        "says",
        Entry("options", _list_of(_part(OPTION), "an option", inline=True)),
    ),
    _step(
        Act,
        "act",
        TEXT,
        "action",
        Entry("with", CALL_ARGUMENTS, "arguments"),
        Entry("goal", FLAG),
        Entry("name", TEXT),
        Entry("for_each", EACH, "each element", (None, "")),
        _SAYS,
        _NEXT,
    ),
    _step(Ask, "ask", NAMES, "wants", _SAYS, _NEXT),
    _step(Do, "do", WORDING, "says", Entry("uses", NAMES), _NEXT),
    _step(Emit, "emit", TEXT, "artifact", _SAYS, Entry("schema", OBJECT_SCHEMA), _NEXT),
    _step(ReturnStep, "return", OPTIONAL_CONDITION, "holds", _SAYS),
    _step(CompleteStep, "complete", CLOSING, "says"),
    _step(FailStep, "fail", CLOSING, "says", Entry("starts", TEXT)),
)
_BY_TYPE = {table.make: table for table in _STEP_TABLES}
_BY_VERB = {table.entries[1].key: table for table in _STEP_TABLES}

FUNCTION = _table(
    Function,
    Entry("kind", FUNCTION_KIND),
    Entry("parameters", NAMES, default=()),
    Entry("predicate", TEXT),
    Entry("says", WORDING),
    Entry("says_not", WORDING),
    Entry("verdict", TEXT),
    Entry("remedy", WORDING),
    Entry("computes", TEXT),
    Entry("value", TEXT),
    Entry("question", TEXT),
    Entry("customer_message", WORDING),
    Entry("optional", NAMES),
    Entry("principal", FLAG),
    Entry("reusable", FLAG),
    Entry("judged_by", JUDGED_BY, "judged_by_model"),
    Entry("closed_by", ACT),
    Entry("steps", STEPS),
    Entry("fallbacks", FALLBACKS),
    Entry("notes", TEXTS),
)

GUARDED = _table(
    Guarded,
    Entry("action", TEXT),
    Entry("roles", NAMES),
    Entry("needed", WHOLE_NUMBER),
    Entry("expires_seconds", WHOLE_NUMBER),
    Entry("recheck", FLAG),
    Entry("when", TEXT),
    Entry("not_done", TEXT),
)

PREREQUISITE = _table(
    Prerequisite,
    Entry("predicate", TEXT),
    Entry("with", ARGUMENTS, "arguments"),
    Entry("wanted", FLAG),
)

ACTION_FACTS = _table(
    ActionFacts,
    Entry("input", SCHEMAS, "inputs", {}),
    Entry("required", NAMES),
    Entry("changes", NAMES),
    Entry("reads", NAMES),
    Entry("shared", FLAG),
    Entry(
        "requires",
        _list_of(_list_of(_part(PREREQUISITE), "a prerequisite", inline=True), inline=True),
    ),
)

SOURCE = _table(
    Source, *(Entry(key, TEXT, default="") for key in ("handbook", "procedure", "sha256", "tools"))
)

PROGRAM = _table(
    Program,
    Entry("sopilot_program", VERSION, "format", REQUIRED),
    Entry("entry", TEXT),
    Entry("compiler", TEXT, default=""),
    Entry(
        "source",
        _part(SOURCE, inline=False),
        default=Source("", "", ""),
    ),
    Entry("constants", CONSTANTS),
    Entry("guarded", _list_of(_part(GUARDED), "a guard")),
    Entry("secrets", NAMES),
    Entry("not_found", _mapping_of(TEXT)),
    Entry("types", SCHEMAS),
    Entry("actions", _mapping_of(_part(ACTION_FACTS), "the action ")),
    Entry("read_only", NAMES),
    Entry("functions", _mapping_of(_part(FUNCTION, inline=False))),
)

# --- whole programs -----------------------------------------------------------------------


def program_to_yaml(program: Program) -> str:
    """The artifact: deterministic, readable, and read back to an equal program."""
    lines: list[str] = []
    for key, value in _written(program, PROGRAM).items():
        emit(lines, key, value, 0)
    return "\n".join(lines) + "\n"


def program_hash(program: Program) -> str:
    """SHA-256 of the artifact's bytes: two programs share it only if they are written alike."""
    return hashlib.sha256(program_to_yaml(program).encode()).hexdigest()


def program_from_yaml(written: str, source: str = "<input>") -> Program:
    """The program in ``written``, verified. Raises ``UserMistake`` with every mistake."""
    report = DiagnosticCollector(source)
    root = parse_nodes(written, report, largest=LARGEST_PROGRAM)
    if root is None:
        raise UserMistake(report.diagnostics())
    places = {("", WHOLE): Place(source, root.line, root.column)}
    functions: dict[str, Function] = {}
    mistakes: list[Diagnostic] = []
    unread: set[str] = set()
    body = child(root, "functions")
    for key, value in fields.entries(report, body, "`functions`") if body is not None else ():
        places[key.text, WHOLE] = Place(source, key.line, key.column)
        steps = child(value, "steps")
        for index, item in enumerate(steps.items if isinstance(steps, ListNode) else ()):
            places[key.text, index] = Place(source, item.line, item.column)
        inner = DiagnosticCollector(source)
        what = f"function `{key.text}`"
        functions[key.text] = _read(inner, value, FUNCTION, what, key, name=key.text)
        if inner.failed:
            unread.add(key.text)
            mistakes += inner.diagnostics()
    program: Program = _read(report, root, PROGRAM, "a program", functions=functions)
    mistakes += report.diagnostics()
    problems = verify_program(program, places=places)
    if mistakes:
        # Functions that couldn't be read are missing from the program: only what the verifier
        # says about the others, and doesn't rest on those, is certain.
        problems = [
            item
            for item in problems
            if (name := item.place.path.split("@", 1)[0], WHOLE) in places
            and name not in unread
            and item.code not in ("unused-function", "wrong-arguments")
        ]
    mistakes += problems
    if mistakes:
        raise UserMistake(sorted(mistakes, key=lambda item: (item.place.line, item.place.column)))
    return program
