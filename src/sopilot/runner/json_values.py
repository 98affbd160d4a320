"""Values of frameworks as the trace keeps them.

A framework coerces, fills in defaults and renames before it calls a tool. The guard judges the
result, so that a tool gets exactly what was proven.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from sopilot.values.json import JSON, canonical, dropped, holds_stand_in, plain, unique
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


def _json(value: Any, *, argument: bool = False) -> JSON:
    """Bytes by their digest, other objects by their text. An ``argument`` is as the tool reads it:
    secrets are in clear, and no model's own serialization counts."""
    if isinstance(value, Enum):
        return _json(value.value, argument=argument)
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        own = {_name(name): _json(item, argument=argument) for name, item in value.items()}
        return own if len(own) == len(value) else dropped("two names are one in JSON")
    if isinstance(value, list | tuple):
        return [_json(item, argument=argument) for item in value]
    if isinstance(value, set | frozenset):
        # Sets that are equal may be in different orders.
        return sorted((_json(item, argument=argument) for item in value), key=_order)
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
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return _json(own, argument=argument)
    if argument and callable(secret := getattr(value, "get_secret_value", None)):
        return _json(secret(), argument=True)
    if argument and getattr(value, "__pydantic_root_model__", False):
        return _json(value.root, argument=True)
    if argument and hasattr(type(value), "model_fields"):
        return _json(values_of_model(value), argument=True)
    if callable(dump := getattr(value, "model_dump", None)):
        return _json(dump(), argument=argument)
    return str(value)


def _name(key: Any) -> str:
    """A key as the tool finds it: an enumeration's key may be equal to its text."""
    name = _json(key)
    return name if isinstance(name, str) else str(key)


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
            defaults |= dict.fromkeys((own_name, its.validation_alias or its.alias), its.default)

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
) -> dict[str, JSON]:
    """The validated arguments as JSON, without defaults that don't count."""
    values = {name: _json(value, argument=True) for name, value in validated.items()}
    own = {name: _json(value, argument=True) for name, value in defaults.items()}
    judged = {name: value for name, value in own.items() if not holds_stand_in(value)}
    return without_defaults(values, written, judged, counted)


def values_of_model(value: Any) -> dict[str, Any]:
    """The fields of a Pydantic model as a tool reads them. The model's own serialization may leave
    some out, or change them."""
    named = type(value).model_fields.items()
    own = {field.alias or name: getattr(value, name) for name, field in named}
    return {**own, **(value.model_extra or {})}
