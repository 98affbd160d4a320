"""Text of others, shown: nothing in it steers a terminal, breaks a line or hides."""

from __future__ import annotations

import unicodedata

SPACES = "".join(
    sign for sign in map(chr, range(0x80, 0x3001)) if unicodedata.category(sign) == "Zs"
)
"""Every space that there is beside the plain one."""
LINES = f"\n\t{SPACES}"
"""What may stay where a text of several lines is shown as one."""


def visible(text: str, keep: str = SPACES) -> str:
    """Controls, line separators, and signs that reorder or hide text, as the escapes that JSON
    has for them: inside of a quoted JSON text the value stays the same."""
    if text.isprintable():
        return str(text)
    return "".join(sign if sign.isprintable() or sign in keep else _escape(sign) for sign in text)


def _escape(sign: str) -> str:
    code = ord(sign)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
