"""Whether a tool's answer reports a success or a failure, although nothing marks it so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_ERROR = re.compile(r"\s*(([A-Za-z_.]*(Error|Exception)|error)\b|Traceback )")
_FAILED = re.compile(r"\s*(failed|failure)\b", re.IGNORECASE)
_ERROR_KEYS = ("error", "errors", "isError", "is_error")


_CODES = ("status", "status_code", "statuscode", "code", "http", "http_status")
_REPORTS = ("status", "outcome", "message", "msg", "detail", "reason", "text")
_WRAPPERS = ("result", "content", "data", "response", "body")
_FLAG = re.compile(
    r"^ok$|auth|log(?:ged)?_?in|verif|valid|grant|allow|permit|accept|success|approv|match|found"
    r"|exist|identif|eligib|correct|known"
)
"""In the name of a field that says whether a call succeeded."""
_SUCCESS = re.compile(
    r"(?:(?:you(?:'re| are)(?: now)? )?(?:ok|okay|yes|true|done|success|completed?|welcome|hello|hi"
    r"|known|found|identified|recogni[sz]ed|verified|confirmed|validated|valid|match(?:ed|es)?"
    r"|accepted|approved|granted|passed|allowed|active|open(?:ed)?|unlocked|authenticated"
    r"|authori[sz]ed|(?:logged|signed|checked)[ _-]?in)(?: as| back)?"
    r"|(?:[a-z-]+ ){0,3}(?:successful(?:ly)?|succeeded)"
    r"|(?:登录|验证|确认|请求|操作)?成功|已登录|已验证|已确认|验证通过|通过|欢迎您?|您好|你好)"
    r"(?:[\s,.:!，。：！]+(?=\S*[^\W\d])[\w@'-]{2,}){0,2}[\s.!。！]*",
    re.IGNORECASE,
)
"""A word for success, with a name at most."""
_NO = re.compile(
    r"\b(?:not|no|none|fail\w*|errors?|denied|declined|rejected|refused|invalid|incorrect|wrong|bad"
    r"|unable|unauthori[sz]ed|forbidden|expired|insufficient|cannot|sorry|unsuccessful\w*|false"
    r"|missing|mismatch|pending|locked|blocked|suspended|disabled|unknown|\w*required|too many"
    r"|try again)\b|\btime[d-]? ?out\b|n't\b|please enter"
    r"|失败|错误|无法|无效|查无|拒绝|不|未|锁定|冻结|过期|等待|请[输再重稍]",
    re.IGNORECASE,
)


def is_decisive(name: str) -> bool:
    """Whether a field with this name may report a failure, or hold the answer itself."""
    name = name.lower()
    return (
        name in (*_CODES, *_REPORTS, *_WRAPPERS)
        or _is_error_name(name)
        or _FLAG.search(name) is not None
    )


def _is_error_name(name: str) -> bool:
    return name.startswith("error") or name in ("iserror", "is_error")


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
    pair of ``true`` and a value, a word for success, perhaps with a name, or data. Anything else
    may be a refusal in any language, and only a verdict can tell."""
    value = _unwrapped(answer)
    if isinstance(value, str):
        return _SUCCESS.fullmatch(value.strip()) is not None and not says_no(value)
    if isinstance(value, list | tuple):
        pair = len(value) == 2 and value[0] is True
        return pair or (bool(value) and all(map(shows_success, value)))
    return _is_data(value) if isinstance(value, Mapping) else value is True


def _is_data(value: Mapping[str, object]) -> bool:
    fields = [(str(name).lower(), item) for name, item in value.items()]
    confirmed = any(item is True and _FLAG.search(name) for name, item in fields)
    return any(item for _, item in fields) and all(
        _may_succeed(name, item, confirmed) for name, item in fields
    )


def _may_succeed(name: str, item: object, confirmed: bool) -> bool:
    """Whether an answer with this field may be a success; ``confirmed`` by another one."""
    if _is_error_name(name):
        return not item
    if name in _WRAPPERS and isinstance(item, Mapping | list | tuple | str | bool):
        return shows_success(item)
    if name in _CODES and str(item).isdecimal():
        return not 300 <= int(str(item)) < 600
    if name in _REPORTS and isinstance(item, str):
        return not item or shows_success(item) or (confirmed and not says_no(item))
    if _FLAG.search(name):
        return bool(item) and not (isinstance(item, str) and says_no(item))
    return True


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
    """A tool's framework may wrap an answer as ``{"result": …}``, or write it as a text or a part
    with a text."""
    if isinstance(answer, Mapping):
        if answer.get("type") == "text" and "text" in answer:
            answer = answer["text"]
        elif [*answer] == ["result"]:
            answer = answer["result"]
    return _read(answer.strip()) if isinstance(answer, str) else answer


def _read(text: str) -> object:
    if text in ("None", "False"):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
