"""What a framework's tool receives: the arguments after the framework's own validation.

A framework coerces, fills in defaults and renames before it calls a tool. The guard judges what
comes of that, so that nothing else can be paid than was proven.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any

from sopilot.runner.json_values import plain_value
from sopilot.values.json import JSON

Validate = Callable[[Mapping[str, JSON]], Mapping[str, Any]]
"""Arguments as written to arguments as validated; raises where they don't fit."""


def validation_by(model: Any) -> Validate:
    """By a Pydantic model, under the names that a caller writes."""

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
    """As JSON. A default counts where the handbook has ``declared`` the input: any other is the
    tool's own business, as is a default of ``None`` for an input that was left out."""
    return {
        name: _argument(value)
        for name, value in validated.items()
        if name in written or (value is not None and name in declared)
    }


def _argument(value: Any) -> JSON:
    if isinstance(value, Enum):
        return _argument(value.value)
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == int(value) else float(value)
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
    if callable(dump := getattr(value, "model_dump", None)):
        return _argument(dump(by_alias=True))
    return plain_value(value)
