"""Rows of PostgreSQL as values, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

from sopilot.runtime.vm import JSON, canonical

RECORD = (
    "SELECT id, created_at, updated_at, metadata, summary, head_seq, head_hash, owner,"
    " lease_expires_at FROM {sessions}"
)


def array_of(values: Iterable[str | bytes | float | None]) -> str:
    """An array as PostgreSQL writes one, for a statement that says of what. The driver would
    make it, too: it asks every item for its type, and looks through each for what to escape."""
    return "{" + ",".join([_ITEMS.get(type(one), _text)(one) for one in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _text(value: object) -> str:
    return _quoted(str(value))


_ITEMS: dict[type, Callable[[Any], str]] = {
    str: _quoted,
    bytes: lambda value: f'"\\\\x{value.hex()}"',
    int: repr,
    float: repr,
    bool: repr,
    NoneType: lambda value: "NULL",
}


def text_of(value: JSON) -> bytes:
    return canonical(value)
