"""Values of frameworks as the trace keeps them.

A framework coerces, fills in defaults and renames before it calls a tool. The guard judges the
result, so that a tool gets exactly what was proven.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from sopilot.values.json import CLASS, JSON, canonical, dropped, holds_stand_in, plain, unique
from sopilot.values.schema import defaults_of, without_defaults

_MOST_DIGITS = 300
"""Before the point of a decimal that is a number in JSON."""


def as_json(value: Any) -> JSON:
    """A tool's result as JSON. Text that holds an object or a list is parsed; a bare ``12`` or
    ``true`` may be text. An object with two values under one name says neither of them."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return plain(json.loads(value, object_pairs_hook=unique))
        except (ValueError, RecursionError):
            return value
    return plain(_json(value))


def _json(value: Any, *, argument: bool = False, classes: bool = False) -> JSON:
    """Bytes as their digest, other objects as their text. An ``argument`` is read as the tool reads
    it: with secrets in clear, without a model's own serialization, and with a stand-in for an
    object whose JSON doesn't say everything. With ``classes``, an object also names its class."""
    inner: Callable[[Any], JSON] = partial(_json, argument=argument, classes=classes)
    if value is None or isinstance(value, bool):
        return value
    content = next((of(value) for kind, of in _CONTENT.items() if isinstance(value, kind)), None)
    if isinstance(value, Enum):
        named = inner(value.value)
        return named if not argument or content in (None, named) else _unjudged(value)
    if content is not None:
        return _unjudged(value) if argument and getattr(value, "__dict__", None) else content
    if isinstance(value, Mapping):
        named_keys = all(isinstance(inner(key), str | int | float) for key in value)
        plainly = type(value) in _MAPPINGS and named_keys and not (classes and CLASS in value)
        if argument and not plainly:
            return _unjudged(value)
        own = {_name(key, inner(key)): inner(item) for key, item in value.items()}
        return own if len(own) == len(value) else dropped("two names are one in JSON")
    if isinstance(value, _LISTS):
        if classes and type(value) not in _LISTS:
            return _unjudged(value)
        items = [inner(item) for item in value]
        # Sets that are equal may be in different orders.
        return sorted(items, key=_order) if isinstance(value, set | frozenset) else items
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() <= _MOST_DIGITS:
        number = int(value) if value == int(value) else float(value)
        # More digits than a float has: what is judged would not be what the tool receives.
        return number if Decimal(repr(number)) == value else str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: inner(getattr(value, field.name)) for field in fields(value)}
        return {**own, **_class(value, classes)}
    if argument and callable(secret := getattr(value, "get_secret_value", None)):
        return inner(secret())
    if argument and getattr(value, "__pydantic_root_model__", False):
        return _unjudged(value) if classes else inner(value.root)
    if argument and hasattr(type(value), "model_fields"):
        own = {name: inner(item) for name, item in values_of_model(value).items()}
        return {**own, **_class(value, classes)}
    if argument and not isinstance(value, _TEXTS) and not hasattr(value, "unicode_string"):
        return _unjudged(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return inner(dump())
    return str(value)


def _name(key: Any, named: JSON) -> str:
    """A key as the tool finds it: an enumeration's key may be equal to its text."""
    return str(named if isinstance(named, str | int | float) else key)


def _class(value: object, classes: bool) -> dict[str, str]:
    kind = type(value)
    return {CLASS: f"{kind.__module__}.{kind.__qualname__}"} if classes else {}


def _unjudged(value: object) -> JSON:
    return dropped(f"not JSON: {type(value).__name__}")


_CONTENT: Mapping[type, Callable[[Any], JSON]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
"""The plain value of an object whose class inherits from text or a number."""
_MAPPINGS = (dict, OrderedDict, MappingProxyType)
"""Other mappings may answer for keys that they don't have, or hold several values per key."""
_LISTS = (list, tuple, set, frozenset)
_TEXTS = (
    *(Decimal, Fraction, timedelta, UUID, PurePath),
    *(IPv4Address, IPv4Network, IPv6Address, IPv6Network),
)
"""Types whose text says everything. Pydantic's URLs are such types, too."""


def _order(value: JSON) -> bytes:
    return canonical(plain(value))


class Validation(NamedTuple):
    """What a framework does to the arguments before the tool receives them."""

    validate: Callable[[Mapping[str, JSON]], Mapping[str, Any]]
    """Turns arguments as written into arguments as validated; raises if they don't fit."""
    defaults: Mapping[str, Any]


def validation_by(model: Any) -> Validation:
    """Validate by a Pydantic model, under the names that a caller writes."""
    defaults: dict[str, Any] = {}
    for own_name, its in model.model_fields.items():
        if not its.is_required() and its.default_factory is None:
            alias = its.validation_alias or its.alias
            names = (own_name, alias) if isinstance(alias, str) else (own_name,)
            defaults |= dict.fromkeys(names, its.default)

    def validate(arguments: Mapping[str, JSON]) -> Mapping[str, Any]:
        result = model.model_validate(dict(arguments))
        values: dict[str, Any] = {}
        for name, field in model.model_fields.items():
            alias = field.validation_alias or field.alias
            renamed = isinstance(alias, str) and (alias in arguments or name not in arguments)
            values[alias if renamed else name] = getattr(result, name)
        return {**values, **(result.model_extra or {})}

    return Validation(validate, defaults)


def validation_by_schema(schema: Mapping[str, object]) -> Validation:
    """A tool that is described by a JSON schema has its defaults, and changes nothing else."""
    defaults = defaults_of(schema)
    return Validation(lambda arguments: {**defaults, **arguments}, defaults)


def received(
    validated: Mapping[str, Any],
    written: Collection[str],
    defaults: Mapping[str, Any],
    counted: Collection[str],
    *,
    classes: bool = False,
) -> dict[str, JSON]:
    """The validated arguments as JSON, without defaults that don't count. With ``classes``, an
    object names its class: nothing else says which one the tool receives."""
    as_judged = partial(_json, argument=True, classes=classes)
    values = {name: as_judged(value) for name, value in validated.items()}
    own = {name: as_judged(value) for name, value in defaults.items()}
    judged = {name: value for name, value in own.items() if not holds_stand_in(value)}
    return without_defaults(values, written, judged, counted)


def values_of_model(value: Any) -> dict[str, Any]:
    """The fields of a Pydantic model as a tool reads them. The model's own serialization may leave
    some out, or change them."""
    named = type(value).model_fields.items()
    own = {field.alias or name: getattr(value, name) for name, field in named}
    return {**own, **(value.model_extra or {})}
