"""Patterns of JSON Schema, with the meaning that they have there and within bounds.

They are ECMAScript's: `$` is the end of the text alone, where Python's is also the place before
a last line break, and digits, letters and word boundaries are ASCII's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sopilot.language.handbook.bounded import Unbounded, ask

_SHORT = 1000
_REPETITION = re.compile(r"[*+?{]")
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


class UnreadablePattern(Exception):
    """``str`` says why nobody can tell whether a text has the form."""


def has_form(text: str, pattern: str) -> bool:
    """Whether the pattern is found in the text. One with several repetitions may take years to
    find nothing: those are bounded."""
    try:
        compiled = _compiled(pattern)
        if len(text) <= _SHORT and len(_REPETITION.findall(pattern)) <= 1:
            return compiled.search(text) is not None
        return ask({"pattern": compiled.pattern, "text": text}) is True
    except (re.error, RecursionError, OverflowError) as problem:
        raise UnreadablePattern("has a pattern that cannot be read") from problem
    except Unbounded as problem:
        raise UnreadablePattern(f"cannot be matched with its pattern: {problem}") from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_PART.sub(lambda part: r"\Z" if part[0] == "$" else part[0], pattern), re.A)
