"""The words of the handbook language, and texts in several languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TYPES = ("string", "number", "integer", "boolean", "object", "array")

TREE_OPERATORS = ("all", "any", "in_order", "first", "not", "when", "requires")
"""``when`` comes with ``then``, ``requires`` with ``otherwise``."""

RECIPE_OPERATORS = ("all", "any")

ARGUMENTS = "arguments"
"""The recipe of a predicate that is judged from its arguments alone."""

USER = "user"
"""The recipe of a predicate that is verified by asking the user."""

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
HANDBOOK_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
SIGNATURE = rf"{IDENTIFIER}(\s*\(\s*({IDENTIFIER}\s*(,\s*{IDENTIFIER}\s*)*)?\))?"
DURATION = r"[1-9][0-9]{0,8}[smhd]"

RESERVED = frozenset({"true", "false", "null", "__null__"})
"""Words that are constants where an argument stands, and therefore no names."""

NOW = "now"
"""The time in an expression, unless the author gives the name another meaning: ISO 8601
text from the machine's clock."""

VERDICT_NAMES = frozenset({"result", "results"})
"""The names of the evidence in a verdict."""

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_IDENTIFIER = re.compile(IDENTIFIER)


def is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None and text not in RESERVED


class SyntaxProblem(Exception):
    """Internal to the reader, which turns it into a diagnostic. ``at`` is the offset in the text
    that was parsed."""

    def __init__(self, message: str, at: int, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.help = help


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
