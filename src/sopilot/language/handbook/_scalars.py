"""What an unquoted scalar means: null, true, false, a decimal number, or text.

YAML's own answers (``no`` is false, ``017`` is 15, ``1:30`` is 90) are the
surprises that this file exists to leave out.
"""

from __future__ import annotations

import math
import re

from sopilot.language.handbook._tree import Scalar

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,299})")
_BROKEN = re.compile(r"-?(0|[1-9][0-9]{0,299})(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,4})?")
_WORDS: dict[str, Scalar] = {"": None, "null": None, "true": True, "false": False}
_SURPRISING = re.compile(
    r"(?i:yes|no|on|off|y|n|true|false|null|~|[-+]?\.(inf|nan)|"
    r"[-+]?[0-9][0-9_.:oxeabcdf+-]*|[-+]?\.[0-9]+|0x[0-9a-f_]+|<<|=)"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*")


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == "-" or "0" <= first <= "9":
        if _WHOLE.fullmatch(text):
            return int(text)
        if _BROKEN.fullmatch(text):
            value = float(text)
            if math.isfinite(value):
                return value
    return text


def is_surprising(text: str) -> bool:
    """Text here, but something else to another YAML reader or to a person in a hurry."""
    if not isinstance(resolve(text), str):
        return False
    return _SURPRISING.fullmatch(text) is not None or _DATE.fullmatch(text) is not None
