"""Whether a tool's answer reports a failure, although nothing marks it as failed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")
_FAILED = re.compile(r"\s*(failed|failure)\b", re.IGNORECASE)
_ERROR_KEYS = ("error", "errors", "isError", "is_error")


DECISIVE = (*_ERROR_KEYS, "status", "status_code", "statusCode", "success", "ok", "result")
"""The fields of an answer that may report a failure, or hold the answer itself."""


def is_error(native: object) -> bool:
    """Most tools say so when they fail: an object with an error, or an error's own text."""
    if isinstance(native, Mapping):
        return any(native.get(name) for name in _ERROR_KEYS)
    return isinstance(native, str) and _ERROR.match(native) is not None


def is_failure(native: object) -> bool:
    """Whether it is an error, or an answer that reports no success."""
    if isinstance(native, Mapping):
        codes = (native.get(name) for name in ("status", "status_code", "statusCode"))
        return (
            is_error(native)
            or any(str(native.get(name)).lower() == "false" for name in ("success", "ok"))
            or str(native.get("status")).lower() == "error"
            or any(type(code) is int and 400 <= code < 600 for code in codes)
        )
    return is_error(native) or (isinstance(native, str) and _FAILED.match(native) is not None)


def reports_nothing(answer: object) -> bool:
    """Whether the answer of a call that didn't fail is empty, or reports a failure all the same."""
    value = _unwrapped(answer)
    if isinstance(value, list | tuple):
        return not value or any(part is None or _denies(part) for part in value)
    return not value or _denies(value)


def shows_success(answer: object) -> bool:
    """Whether the answer of a call that succeeded can open a gate without a verdict: ``true``, a
    pair of ``true`` and a value, or data. Anything else may be a refusal in any language, and only
    a verdict can tell: a text, a number, and an object that says no, lacks a value, or has a status
    in words."""
    value = _unwrapped(answer)
    if not isinstance(value, list | tuple):
        return _is_success(value)
    pair = len(value) == 2 and value[0] is True
    return pair or (bool(value) and all(map(_is_success, value)))


def _is_success(value: object) -> bool:
    if not isinstance(value, Mapping):
        return value is True
    return bool(value) and all(_may_succeed(name, item) for name, item in value.items())


def _may_succeed(name: str, item: object) -> bool:
    """Whether an answer with this field may be a success."""
    if name in _ERROR_KEYS:
        return not item
    if name in ("success", "ok"):
        return item is True
    if name in ("status", "status_code", "statusCode"):
        return type(item) is int and 200 <= item < 300
    if name == "result":
        return shows_success(item)
    return item is not None and item is not False


def _denies(value: object) -> bool:
    if isinstance(value, str):
        return is_failure(value) or is_failure(value.lower())
    if isinstance(value, Mapping) and str(value.get("status")).lower() in ("failed", "failure"):
        return True
    return value is False or is_failure(value)


def _unwrapped(answer: object) -> object:
    """A tool's framework may wrap an answer as ``{"result": …}`` or write it as a text."""
    value = answer["result"] if isinstance(answer, Mapping) and [*answer] == ["result"] else answer
    return _read(value.strip()) if isinstance(value, str) else value


def _read(text: str) -> object:
    if text in ("None", "False"):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
