"""Values from tools and users inside a frame: one line of JSON, cut to a fixed budget.

Whatever a tool or a user says, it stays inside one quoted value on one line, so
it cannot pass for a step, a result or a message of the runtime.
"""

from __future__ import annotations

import json

VALUE_BUDGET = 80
"""The most characters one value takes in a frame."""

_CUT = "…"
_NO_BUDGET = 1_000_000


def quote_value(value: object, budget: int = VALUE_BUDGET) -> str:
    """``value`` as JSON on one line of at most ``budget`` visible characters.

    What is not JSON is shown by the name of its type; what is too long ends in ``…``.
    """
    if isinstance(value, str) and len(value) > budget:
        value = value[:budget] + _CUT  # the rest would be encoded only to be thrown away
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(type(value).__name__)
    shown = "".join(map(_visible, text[: budget + 1]))
    if len(shown) <= budget:
        return shown
    closing = '"' if isinstance(value, str) else ""
    return shown[: budget - len(_CUT) - len(closing)] + _CUT + closing


def quote_literal(value: object) -> str:
    """A constant of the program itself: quoted alike, never cut."""
    return quote_value(value, _NO_BUDGET)


def _visible(character: str) -> str:
    """Controls, line separators and signs that reorder or hide text become escapes."""
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
