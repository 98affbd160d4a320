"""Whether a tool's answer reports a failure, although nothing marks it as failed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")
_FAILED = re.compile(r"\s*(failed|failure)\b", re.IGNORECASE)
_ERROR_KEYS = ("error", "errors", "isError", "is_error")


_CODES = ("status", "status_code", "statusCode", "code", "http", "http_status")
_REPORTS = ("status", "outcome", "message", "msg")
_SUCCESS_FIELD = re.compile(
    r"ok|success|succeeded|valid|accepted|granted|allowed"
    r"|(?:is_?)?(?:logged_?in|authenticated|authori[sz]ed|verified|identified|matched)",
    re.IGNORECASE,
)
"""Fields that report whether a call succeeded."""
_SUCCESS = re.compile(
    r"\s*(?:(?:ok|okay|yes|true|done|success\w*|succeeded|completed?|welcome|hello|hi|known|found"
    r"|identified|recogni[sz]ed|verified|confirmed|validated|valid|match(?:ed|es)?|accepted"
    r"|approved|granted|passed|allowed|active|open(?:ed)?|unlocked|authenticated|authori[sz]ed"
    r"|(?:logged|signed|checked)[ -]?in|(?:log|sign)[ -]?in (?:ok|successful|succeeded))(?!\w)"
    r"|成功|已登录|已验证|已确认|验证通过|登录成功|通过|欢迎|您好|你好)",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\b(?:not|no|fail\w*|errors?|denied|declined|rejected|refused|invalid|incorrect|wrong|unable"
    r"|unauthori[sz]ed|forbidden|expired|insufficient|cannot|sorry|unsuccessful\w*|false|missing"
    r"|pending|locked|blocked|suspended|disabled|unknown|\w*required|too many|try again)\b"
    r"|\btime[d-]? ?out\b|n't\b|please enter"
    r"|失败|错误|无法|无效|查无|拒绝|不|未|锁定|冻结|过期|等待",
    re.IGNORECASE,
)


def is_decisive(name: str) -> bool:
    """Whether a field with this name may report a failure, or hold the answer itself."""
    return name in (*_ERROR_KEYS, *_CODES, *_REPORTS, "result") or bool(
        _SUCCESS_FIELD.fullmatch(name)
    )


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


def denies_effect(answer: object) -> bool:
    """Whether the answer of a call that failed says that nothing was done: ``false``, alone or as
    ``success`` or ``ok``. An error may have come later: a timeout, a lost connection."""
    if isinstance(answer, Mapping):
        return any(answer.get(name) is False for name in ("success", "ok")) and not is_error(answer)
    return answer is False


def reports_nothing(answer: object) -> bool:
    """Whether the answer of a call that didn't fail is empty, or reports a failure all the same."""
    value = _unwrapped(answer)
    if isinstance(value, list | tuple):
        return not value or any(part is None or _denies(part) for part in value)
    return not value or _denies(value)


def shows_success(answer: object) -> bool:
    """Whether the answer of a call that succeeded can open a gate without a verdict: ``true``, a
    pair of ``true`` and a value, a text that begins with a word for success, or data. Anything
    else may be a refusal in any language, and only a verdict can tell."""
    value = _unwrapped(answer)
    if not isinstance(value, list | tuple):
        return _is_success(value)
    pair = len(value) == 2 and value[0] is True
    return pair or (bool(value) and all(map(_is_success, value)))


def _is_success(value: object) -> bool:
    if isinstance(value, str):
        return _says_success(value)
    if not isinstance(value, Mapping):
        return value is True
    flags = {
        item for name, item in value.items() if isinstance(item, bool) and name not in _ERROR_KEYS
    }
    return (
        flags != {False}
        and any(item is not None for item in value.values())
        and all(_may_succeed(name, item) for name, item in value.items())
    )


def _may_succeed(name: str, item: object) -> bool:
    """Whether an answer with this field may be a success."""
    if name in _ERROR_KEYS:
        return not item
    if name == "result":
        return shows_success(item)
    if _SUCCESS_FIELD.fullmatch(name):
        return bool(item) and (not isinstance(item, str) or _says_success(item))
    if name in _REPORTS and isinstance(item, str):
        return not item or _says_success(item)
    if name in _CODES and type(item) is int:
        return not 300 <= item < 600
    return True


def _says_success(text: str) -> bool:
    return _SUCCESS.match(text) is not None and not says_no(text)


def says_no(text: str) -> bool:
    """Whether a text has a word of refusal."""
    return _NO.search(text) is not None


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
