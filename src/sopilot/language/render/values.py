"""Values from tools and users inside a frame: one line of JSON, cut to a fixed budget.

Whatever a tool or a user says, it stays inside one quoted value on one line, so
it cannot pass for a step, a result or a message of the runtime.
"""

from __future__ import annotations

import hashlib
import json
import re

from sopilot.language.diagnostics import visible

VALUE_BUDGET = 80
"""The most characters one value takes in a frame."""

_CUT = "…"
_NO_BUDGET = 1_000_000
_NAMED = re.compile(r"@([0-9a-f]{8})(?: |$)")


def quote_value(value: object, budget: int = VALUE_BUDGET) -> str:
    """``value`` as JSON on one line of at most ``budget`` visible characters.

    What is not JSON is shown by the name of its type. What is too long is a text that begins
    with the value's name and ends in ``…``; passed back, it stands for the whole value.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(type(value).__name__)
    shown = visible(text[: budget + 1], keep="")
    if len(shown) <= budget and len(text) <= budget:
        return shown
    name = f'"@{digest_of(value)} '
    inside = shown[1:] if isinstance(value, str) else shown
    # No quotation mark may end the text before its end.
    inside = inside.replace('\\"', "'").replace('"', "'")
    cut = inside[: budget - len(name) - len(_CUT) - 1]
    return name + _half_escape(cut).replace("\\", "/") + _CUT + '"'


def _half_escape(text: str) -> str:
    """Without an escape that was cut in its middle."""
    return re.sub(r"\\(u[0-9a-fA-F]{0,3})?$", "", text)


def digest_of(value: object) -> str:
    """The name of a value that is too long to show."""
    try:
        spelled = json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return ""
    return hashlib.sha256(spelled.encode("utf-8", "replace")).hexdigest()[:8]


def abbreviation_name(value: object) -> str | None:
    """The name in a text that ``quote_value`` may have cut, or just the name."""
    match = _NAMED.match(value) if isinstance(value, str) else None
    return match.group(1) if match is not None else None


def quote_literal(value: object) -> str:
    """A constant of the program itself: quoted alike, never cut."""
    return quote_value(value, _NO_BUDGET)
