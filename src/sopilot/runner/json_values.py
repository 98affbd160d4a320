"""A framework's value as the trace keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from sopilot.values.json import JSON, plain


def as_json(value: Any) -> JSON:
    """Text that is an object or a list is read; bytes are kept by their digest, and what has
    no JSON by its text."""
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
