"""Every fixed word a model sees, in English and in Chinese, under the same keys.

Identifiers, operations and the truth tokens `true` and `false` are never translated; the SOP's
own sentences stand in the languages in which their author wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.language.diagnostics import did_you_mean, mistake
from sopilot.language.render._answers_en import ENGLISH_ANSWERS
from sopilot.language.render._answers_zh import CHINESE_ANSWERS
from sopilot.language.render._scaffold_en import ENGLISH
from sopilot.language.render._scaffold_zh import CHINESE

TOOL: Final = "pg_program_step"
"""The one bookkeeping tool, as the frames name it."""

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {**ENGLISH, **ENGLISH_ANSWERS},
    "zh": {**CHINESE, **CHINESE_ANSWERS},
}


def words(language: str) -> Mapping[str, str]:
    """The table of fixed words of a language."""
    if language not in LANGUAGES:
        raise mistake(
            "unknown-language",
            f"there is no scaffold in `{language}`",
            help=did_you_mean(language, LANGUAGES),
        )
    return LANGUAGES[language]
