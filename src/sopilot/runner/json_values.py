"""Values of frameworks as the trace keeps them.

A framework coerces, fills in defaults and renames before it calls a tool. The guard judges the
result, so that a tool gets exactly what was proven.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any

from sopilot.values.json import JSON, plain


def as_json(value: Any) -> JSON:
    """Parse text that holds an object or a list; keep bytes by their digest, other values by
    their text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return plain(json.loads(value))
        except (ValueError, RecursionError):
            return value
    return plain(plain_value(value))


def plain_value(value: Any) -> JSON:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_value(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return plain_value(dump())
    if is_dataclass(value) and not isinstance(value, type):
        return plain_value(asdict(value))
    return str(value)


_MOST_DIGITS = 300
"""Before the point of a decimal that is a number in JSON."""

Validate = Callable[[Mapping[str, JSON]], Mapping[str, Any]]
"""Turns arguments as written into arguments as validated; raises if they don't fit."""


def validation_by(model: Any) -> Validate:
    """Validate by a Pydantic model, under the names that a caller writes."""

    def validate(arguments: Mapping[str, JSON]) -> Mapping[str, Any]:
        result = model.model_validate(dict(arguments))
        values: dict[str, Any] = {}
        for name, field in model.model_fields.items():
            alias = field.validation_alias or field.alias
            renamed = isinstance(alias, str) and (alias in arguments or name not in arguments)
            values[alias if renamed else name] = getattr(result, name)
        return {**values, **(result.model_extra or {})}

    return validate


def received(
    validated: Mapping[str, Any], written: Mapping[str, JSON], declared: Collection[str]
) -> dict[str, JSON]:
    """The validated arguments as JSON. A default counts only for an input that the handbook has
    ``declared``, unless it is ``None``."""
    return {
        name: _argument(value)
        for name, value in validated.items()
        if name in written or (value is not None and name in declared)
    }


def _argument(value: Any) -> JSON:
    if isinstance(value, Enum):
        return _argument(value.value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() <= _MOST_DIGITS:
        number = int(value) if value == int(value) else float(value)
        # More digits than a float has: what is judged would not be what the tool receives.
        return number if Decimal(repr(number)) == value else str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _argument(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_argument(item) for item in value]
    if callable(secret := getattr(value, "get_secret_value", None)):
        return _argument(secret())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _argument(getattr(value, field.name)) for field in fields(value)}
    if getattr(value, "__pydantic_root_model__", False):
        return _argument(value.root)
    if hasattr(type(value), "model_fields"):
        return _argument(values_of_model(value))
    return plain_value(value)


def values_of_model(value: Any) -> dict[str, Any]:
    """The fields of a Pydantic model as a tool reads them. The model's own serialization may leave
    some out, or change them."""
    named = type(value).model_fields.items()
    own = {field.alias or name: getattr(value, name) for name, field in named}
    return {**own, **(value.model_extra or {})}
