"""Text for people and models: values on one line of JSON, tables, counts, moments.

A value of a tool or a user stays inside one quoted text on one line. It can't pass for a message of
the runtime, control a terminal or hide text.
"""

from __future__ import annotations

import hashlib
import json
import re
import traceback
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def place_of(problem: BaseException) -> str:
    """The file and line that raised it: all of an exception that can quote no secret, beside its
    type."""
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"


class CodedText(str):
    """A sentence with the code and the fields that it was made from."""

    __slots__ = ("code", "fields")

    code: str
    fields: Mapping[str | int, object]

    def __new__(cls, text: str, code: str, fields: Mapping[Any, object]) -> CodedText:
        made = super().__new__(cls, text)
        made.code, made.fields = code, fields
        return made

    def __reduce__(self) -> tuple[type[CodedText], tuple[str, str, Mapping[str | int, object]]]:
        return CodedText, (str(self), self.code, self.fields)


SPACES = "".join(
    sign for sign in map(chr, range(0x80, 0x3001)) if unicodedata.category(sign) == "Zs"
)
"""Every Unicode space except the plain one."""

LINES = f"\n\t{SPACES}"
"""Characters that stay if a text is shown with its lines."""


def visible(text: str, keep: str = SPACES) -> str:
    """Escape control characters, line separators, and characters that reorder or hide text, as in
    JSON: the value of a quoted JSON text stays the same."""
    if text.isprintable():
        return str(text)
    return "".join(sign if sign.isprintable() or sign in keep else _escape(sign) for sign in text)


def _escape(sign: str) -> str:
    code = ord(sign)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


class Heading(str):
    """A line that a terminal shows in bold."""


class Lines(str):
    """Several lines: a table, or a text that is shown as it was written."""


def moment(at: float) -> str:
    """A time as ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table(rows: Iterable[Sequence[object]], header: Sequence[str]) -> Lines:
    """Columns padded to their widest cell; numbers to the right."""
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(header)]
    right = [all(_is_number(row[i]) for row in cells) and bool(cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return Lines("\n".join([line(list(header)), rule, *map(line, cells)]))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit()


VALUE_BUDGET = 80
"""The most characters one value takes in a frame."""

_CUT = "…"
_NO_BUDGET = 1_000_000
_NAMED = re.compile(r"@([0-9a-f]{8})(?: |$)")


def quote_value(value: object, budget: int = VALUE_BUDGET) -> str:
    """``value`` as JSON on one line of at most ``budget`` visible characters.

    A value that isn't JSON is shown by the name of its type. A value that is too long is shown
    as a text that begins with its name and ends in ``…``; passed back, it stands for the value.
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
    # No quotation mark may end the text early.
    inside = inside.replace('\\"', "'").replace('"', "'")
    cut = inside[: budget - len(name) - len(_CUT) - 1]
    return name + _half_escape(cut).replace("\\", "/") + _CUT + '"'


def _half_escape(text: str) -> str:
    """Remove an escape that was cut in the middle."""
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
    """A constant of the program, quoted and never cut."""
    return quote_value(value, _NO_BUDGET)
