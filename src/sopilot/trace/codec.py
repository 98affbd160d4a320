"""Operations as JSON objects and back: one table of fields for writing, reading and checking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, NamedTuple, get_args

from sopilot.messages.errors import TraceError
from sopilot.trace.events import Operation, Return
from sopilot.trace.redaction import is_reference
from sopilot.values.json import JSON, plain, plain_mapping

Fields = Mapping[str, JSON]


class _Kind(NamedTuple):
    """The kind of a field. ``types`` are its Python types, empty for any; ``read``
    raises ``TraceError`` for a value that it can't be."""

    types: tuple[type, ...]
    write: Callable[[Any], Any]
    read: Callable[[str, JSON], Any]


def _unchanged(value: Any) -> Any:
    return value


def _read_any(name: str, value: JSON) -> JSON:
    return value


def _read_text(name: str, value: JSON) -> str:
    if not isinstance(value, str):
        raise TraceError(f"`{name}` must be a string")
    return value


def _read_words(name: str, value: JSON) -> str | Mapping[str, JSON]:
    return value if is_reference(value) else _read_text(name, value)


def _read_object(name: str, value: JSON) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise TraceError(f"`{name}` must be an object")
    if is_reference(value):
        raise TraceError(f"`{name}` is withheld: restore it before replaying")
    return value


def _read_flag(name: str, value: JSON) -> bool:
    if not isinstance(value, bool):
        raise TraceError(f"`{name}` must be true or false")
    return value


def _read_citations(name: str, value: JSON) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TraceError(f"`{name}` must be a list of strings")
    return tuple(value)


def _read_number(name: str, value: JSON) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TraceError(f"`{name}` must be a sequence number")
    return value


def _read_numbers(name: str, value: JSON) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TraceError(f"`{name}` must be a list of sequence numbers")
    return tuple(_read_number(name, number) for number in value)


def _or_none(kind: _Kind) -> _Kind:
    def read(name: str, value: JSON) -> Any:
        return None if value is None else kind.read(name, value)

    def write(value: Any) -> Any:
        return None if value is None else kind.write(value)

    return _Kind((*kind.types, NoneType), write, read)


_ANY = _Kind((), plain, _read_any)
_TEXT = _Kind((str,), plain, _read_text)
_WORDS = _Kind((str, dict, Mapping), plain, _read_words)
_OBJECT = _Kind((dict, Mapping), plain_mapping, _read_object)
_FLAG = _Kind((bool,), _unchanged, _read_flag)
_CITATIONS = _Kind((tuple,), lambda cited: [plain(item) for item in cited], _read_citations)
_NUMBER = _Kind((int,), _unchanged, _read_number)
_NUMBERS = _Kind((tuple,), list, _read_numbers)


class _Field(NamedTuple):
    """``rare``: written only where it differs from its default. ``required``: it must be there."""

    name: str
    kind: _Kind
    rare: bool
    required: bool
    default: Any


_BY_ANNOTATION = {
    "JSON": _ANY,
    "str": _TEXT,
    "str | None": _or_none(_TEXT),
    "Text": _WORDS,
    "Mapping[str, JSON]": _OBJECT,
    "Mapping[str, JSON] | None": _or_none(_OBJECT),
    "bool": _FLAG,
    "bool | None": _or_none(_FLAG),
    "tuple[str, ...]": _CITATIONS,
    "int": _NUMBER,
    "tuple[int, ...]": _NUMBERS,
}
_OPERATIONS: tuple[type[Operation], ...] = get_args(Operation)

_RARE = frozenset({"act", "undecided", "licence", "amended", "unknown", "principal"})
"""Fields that most events don't have."""


def _table(operation: type[Operation]) -> tuple[_Field, ...]:
    table = []
    for field in fields(operation):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        kind, rare = _BY_ANNOTATION[str(field.type)], field.name in _RARE
        # An empty text was given; only objects, citations and what may be null are left out.
        required = not rare and (default is MISSING or default == "") and kind is not _ANY
        table.append(_Field(field.name, kind, rare, required, default))
    return tuple(table)


_TABLES: dict[type, tuple[_Field, ...]] = {item: _table(item) for item in _OPERATIONS}


# Every step comes by here: plain tuples of what writing and checking need.
_WRITTEN = {
    operation: tuple((item.name, item.kind.write, item.rare, item.default) for item in table)
    for operation, table in _TABLES.items()
}

_TYPED = {
    operation: tuple((item.name, item.kind.types) for item in table if item.kind.types)
    for operation, table in _TABLES.items()
}

_BY_NAME: dict[str, type[Operation]] = {item.kind: item for item in _OPERATIONS}


def operation_fields(operation: Operation) -> dict[str, Any]:
    """The operation's own fields, as plain values that nobody else holds."""
    written: dict[str, Any] = {}
    for name, write, rare, default in _WRITTEN[type(operation)]:
        value = getattr(operation, name)
        if rare and value == default:
            continue
        written[name] = value if type(value) is str and value.isascii() else write(value)
    return written


def misshapen(operation: object) -> str | None:
    """The reason why an object isn't an operation: callers are not always type-checked."""
    table = _TYPED.get(type(operation))
    if table is None:
        return "this is not an operation"
    for name, types in table:
        value = getattr(operation, name)
        if type(value) not in types and not isinstance(value, types):
            return f"`{name}` has the wrong type"
    if isinstance(operation, Return) and not all(
        isinstance(item, str) for item in operation.evidence
    ):
        return "`evidence` must be strings"
    return None


def decode_operation(value: Fields, kind: str | None = None) -> Operation:
    """The operation in a JSON object; its name is ``kind`` or stands under ``operation``."""
    name = kind if kind is not None else value.get("operation")
    operation = _BY_NAME.get(name) if isinstance(name, str) else None
    if operation is None:
        raise TraceError(f"unknown operation `{name}`")
    values = []
    for field in _TABLES[operation]:
        if field.name in value:
            values.append(field.kind.read(field.name, value[field.name]))
        elif field.required:
            values.append(field.kind.read(field.name, None))
        else:
            values.append(None if field.default is MISSING else field.default)
    return operation(*values)
