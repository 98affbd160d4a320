"""Whether a tool's answer reports a failure, although nothing marks it as failed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sopilot.values.json import JSON

_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")
_FAILED = re.compile(r"\s*(failed|failure)\b", re.IGNORECASE)
_ERROR_KEYS = ("error", "errors", "isError", "is_error")


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


def shows_success(answer: JSON) -> bool:
    """Whether a call with this answer can open a gate that has no verdict: the answer isn't empty
    and reports no failure. A tool's framework may wrap it as ``{"result": …}``."""
    value = answer["result"] if isinstance(answer, Mapping) and [*answer] == ["result"] else answer
    return bool(value) and not is_failure(value)
