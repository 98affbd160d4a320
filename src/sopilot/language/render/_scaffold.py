"""Every fixed word a model sees, in English and in Chinese, under the same keys.

Identifiers and the SOP's own sentences are never translated: they are the same
bytes in every language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sopilot.language.compiler.gates import DONE, LOGIN, SECOND_FACTOR
from sopilot.language.compiler.rules import JUDGE_ARGUMENTS, NO_RECIPE
from sopilot.language.diagnostics import Diagnostic, UserMistake, did_you_mean
from sopilot.language.render._scaffold_en import ENGLISH
from sopilot.language.render._scaffold_zh import CHINESE

TOOL: Final = "pg_program_step"
"""The one bookkeeping tool, as the frames name it."""

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = {"en": ENGLISH, "zh": CHINESE}

_NAMES = r"(?P<names>`[^`]+`(?:, `[^`]+`)*)"


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.escape(template).replace(re.escape("{wants}"), _NAMES))


_COMPILED_IN_CHINESE: Final[Mapping[str, str]] = {
    "all of these must hold": "以下各项必须全部成立",
    "all of these must hold, checked in this order": "以下各项必须全部成立，并按此顺序检查",
    "one of these must hold; check every one before deciding": (
        "以下至少一项必须成立；全部检查之后再作判断"
    ),
    "one of these must hold; stop at the first that does": (
        "以下至少一项必须成立；遇到第一个成立的即停止"
    ),
    JUDGE_ARGUMENTS: "根据参数判断；不需要工具",
    DONE: "若该调用在本次会话中已成功则成立；不要为这项检查去调用",
    NO_RECIPE: "没有可用的核验工具：根据已知信息判断，否则拒绝",
    LOGIN.judge: "调用成功即成立；用户可以更正后重试",
    SECOND_FACTOR.judge: "调用成功才成立；仅通过前一道关卡是不够的",
}
_ASKED_IN_CHINESE: Final = (
    (_pattern(LOGIN.ask), "若对话中还没有 {names}，请向用户询问"),
    (_pattern(SECOND_FACTOR.ask), "用户已通过前一道关卡；若对话中还没有 {names}，请向用户询问"),
    (
        re.compile(f"take {_NAMES} from earlier evidence, or ask the user"),
        "从先前的证据中取得 {names}，否则询问用户",
    ),
)


def words(language: str) -> Mapping[str, str]:
    """The table of fixed words of a language."""
    if language not in LANGUAGES:
        raise UserMistake(
            [
                Diagnostic(
                    "unknown-language",
                    f"there is no scaffold in `{language}`",
                    help=did_you_mean(language, LANGUAGES),
                )
            ]
        )
    return LANGUAGES[language]


def note(says: str, language: str) -> str:
    """A step's or function's remark. What the compiler wrote is a fixed word and has a
    translation; what an author wrote stays as it is."""
    if language == "en" or not says:
        return says
    if says in _COMPILED_IN_CHINESE:
        return _COMPILED_IN_CHINESE[says]
    for pattern, template in _ASKED_IN_CHINESE:
        match = pattern.fullmatch(says)
        if match is not None:
            return template.format(names=match.group("names"))
    return says
