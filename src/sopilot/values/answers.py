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


def shows_success(answer: object) -> bool:
    """Whether a call with this answer can open a gate that has no verdict: the answer isn't empty
    and reports no failure. A tool's framework may wrap it as ``{"result": …}``, write it as a text
    or send it in several parts."""
    value = answer["result"] if isinstance(answer, Mapping) and [*answer] == ["result"] else answer
    if isinstance(value, str):
        value = _read(value.strip())
    if isinstance(value, list | tuple):
        return bool(value) and not any(part is None or _denies(part) for part in value)
    return bool(value) and not _denies(value)


def _denies(value: object) -> bool:
    if isinstance(value, str):
        return is_failure(value) or is_failure(value.lower())
    if isinstance(value, Mapping) and str(value.get("status")).lower() in ("failed", "failure"):
        return True
    return value is False or is_failure(value)


def _read(text: str) -> object:
    if text in ("None", "False"):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
