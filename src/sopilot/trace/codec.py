"""Operations as JSON objects and back: one table of fields for writing, reading and checking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
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


def _scalar(kind: type, expected: str, write: Callable[[Any], Any]) -> _Kind:
    def read(name: str, value: JSON) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TraceError(f"`{name}` must be {expected}")
        return value

    return _Kind((kind,), write, read)


def _tuple_of(kind: _Kind, expected: str) -> _Kind:
    def read(name: str, value: JSON) -> tuple[Any, ...]:
        if isinstance(value, list):
            with suppress(TraceError):
                return tuple([kind.read(name, item) for item in value])
        raise TraceError(f"`{name}` must be a list of {expected}")

    return _Kind((tuple,), lambda values: [kind.write(item) for item in values], read)


def _or_none(kind: _Kind) -> _Kind:
    def read(name: str, value: JSON) -> Any:
        return None if value is None else kind.read(name, value)

    def write(value: Any) -> Any:
        return None if value is None else kind.write(value)

    return _Kind((*kind.types, NoneType), write, read)


def _read_words(name: str, value: JSON) -> str | Mapping[str, JSON]:
    text: str | Mapping[str, JSON] = value if is_reference(value) else _TEXT.read(name, value)
    return text


def _read_object(name: str, value: JSON) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise TraceError(f"`{name}` must be an object")
    if is_reference(value):
        raise TraceError(f"`{name}` is withheld: restore it before replaying")
    return value


_ANY = _Kind((), plain, lambda name, value: value)
_TEXT = _scalar(str, "a string", plain)
_WORDS = _Kind((str, dict, Mapping), plain, _read_words)
_OBJECT = _Kind((dict, Mapping), plain_mapping, _read_object)
_FLAG = _scalar(bool, "true or false", _unchanged)
_NUMBER = _scalar(int, "a sequence number", _unchanged)


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
    "tuple[str, ...]": _tuple_of(_TEXT, "strings"),
    "int": _NUMBER,
    "tuple[int, ...]": _tuple_of(_NUMBER, "sequence numbers"),
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


_BY_NAME: dict[str, type[Operation]] = {item.kind: item for item in _OPERATIONS}


def operation_fields(operation: Operation) -> dict[str, Any]:
    """The operation's own fields, as private plain values."""
    written: dict[str, Any] = {}
    for name, kind, rare, _, default in _TABLES[type(operation)]:
        value = getattr(operation, name)
        if rare and value == default:
            continue
        written[name] = value if type(value) is str and value.isascii() else kind.write(value)
    return written


def misshapen(operation: object) -> str | None:
    """The reason why an object isn't an operation: callers are not always type-checked."""
    table = _TABLES.get(type(operation))
    if table is None:
        return "this is not an operation"
    for name, kind, *_ in table:
        value, types = getattr(operation, name), kind.types
        if types and type(value) not in types and not isinstance(value, types):
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
