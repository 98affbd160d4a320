"""Texts in several languages, as authors may write every ``says``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LANGUAGES: Final = ("en", "zh")
"""The languages of the scaffold, the first of which is written where nothing else is asked for."""


class Translated(str):
    """A text in several languages. As a plain text it is in English, or in the language that
    was written first."""

    texts: Mapping[str, str]

    def __new__(cls, texts: Mapping[str, str]) -> Translated:
        language = LANGUAGES[0] if LANGUAGES[0] in texts else next(iter(texts))
        made = super().__new__(cls, texts[language])
        made.texts = dict(texts)
        return made

    def __getnewargs__(self) -> tuple[Mapping[str, str]]:  # type: ignore[override]  # not a str's
        return (self.texts,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Translated) and self.texts == other.texts

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def in_language(text: str, language: str) -> str:
    """The text in that language; in its own where there is no translation."""
    if isinstance(text, Translated):
        return text.texts.get(language, str(text))
    return text


def each_language(text: str) -> Mapping[str, str]:
    """Every language in which a text is written; a plain text stands for all of them."""
    return text.texts if isinstance(text, Translated) else dict.fromkeys(LANGUAGES, text)
