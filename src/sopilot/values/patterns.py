"""Patterns of JSON Schema and of ``matches``, in linear time.

RE2 runs them: no pattern can take long, so nothing has to be stopped. Look-around and
back-references have no linear match; a pattern with them can't be read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_UNICODE_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[\s\S])")


class UnreadablePattern(Exception):
    """``str`` says why the pattern decides nothing."""


def has_form(text: str, pattern: str) -> bool:
    """Whether the pattern occurs in the text. ``$`` is the end of the text alone; digits, letters
    and word boundaries are ASCII's, as in JSON Schema."""
    return _compiled(pattern).search(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    escaped = _UNICODE_ESCAPE.sub(
        lambda match: rf"\x{{{match[1]}}}" if match[1] else match[0], pattern
    )
    try:
        return re2.compile(escaped.encode("utf-8", "replace"), options)
    except re2.error as problem:
        raise UnreadablePattern("has a pattern that cannot be read") from problem
