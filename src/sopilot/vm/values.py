"""JSON values as the machine keeps them: plain, comparable, canonical."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

JSON = Any
"""A JSON value: null, boolean, number, string, list, object."""

DEEPEST = 64
"""Nesting beyond this is dropped: no honest tool needs it, and encoders recurse."""

_WIDEST_INTEGER = 4096
_DROPPED = "$dropped"

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical(value: JSON) -> bytes:
    """The one spelling of a plain value: sorted keys, no spaces, UTF-8."""
    return _encode(value).encode("utf-8", "surrogatepass")


def plain(value: object, depth: int = 0) -> JSON:
    """A private JSON copy of anything: what JSON cannot say becomes ``{"$dropped": why}``.

    The copy keeps a caller's later changes out of the configuration, and the
    limits keep a hostile value from breaking an encoder.
    """
    kind = type(value)
    if kind is str:
        assert isinstance(value, str)
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if value is None or kind is bool:
        return value
    if kind is int:
        assert isinstance(value, int)
        return value if value.bit_length() <= _WIDEST_INTEGER else {_DROPPED: "integer too large"}
    if kind is float:
        assert isinstance(value, float)
        return value if math.isfinite(value) else {_DROPPED: f"not a finite number: {value}"}
    if depth >= DEEPEST:
        return {_DROPPED: "nested too deeply"}
    if isinstance(value, Mapping):
        copy = {
            plain(key) if isinstance(key, str) else _key(key): plain(item, depth + 1)
            for key, item in value.items()
        }
        # In canonical order, so that a run and its replay iterate alike.
        return {key: copy[key] for key in sorted(copy)} if len(copy) > 1 else copy
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return plain(str.__str__(value))
    if isinstance(value, int):
        return plain(int(value))
    if isinstance(value, float):
        return plain(float(value))
    return {_DROPPED: "not JSON"}


def _key(key: object) -> str:
    """Spelled as a JSON encoder would; other keys have no safe spelling."""
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int) and key.bit_length() <= _WIDEST_INTEGER:
        return str(int(key))
    return _DROPPED


def plain_mapping(value: Mapping[str, object]) -> dict[str, JSON]:
    copy = plain(value)
    assert isinstance(copy, dict)
    return copy


def shown(value: JSON, width: int = 80) -> str:
    """Quoted as one line of JSON, so that a value cannot pass for the machine's own words."""
    text = _encode(value if not isinstance(value, str) else value[:width])
    if not text.isprintable():
        text = "".join(
            sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text[:width]
        )
    return text if len(text) <= width else text[: width - 1] + "…"


def agree(left: JSON, right: JSON) -> bool:
    """Whether two plain values say the same.

    A boolean is never a number. A number and a string that spells it agree,
    because models write ``"100"`` where the user said 100.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float):
        return left == right if not isinstance(right, str) else _spells(right, left)
    if isinstance(right, int | float):
        return isinstance(left, str) and _spells(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(agree(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            agree(one, other) for one, other in zip(left, right, strict=True)
        )
    return bool(left == right)


def _spells(text: str, number: float) -> bool:
    if len(text) > 64:
        return False
    try:
        spelled = json.loads(text)
    except ValueError:
        return False
    if isinstance(spelled, bool) or not isinstance(spelled, int | float):
        return False
    return spelled == number
