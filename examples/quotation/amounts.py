"""Reads numbers and dates as people write them, strictly.

A text that could mean two numbers is no number: ``1,234`` is refused under
either decimal mark, because nobody can tell a thousand from one and a quarter.
"""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Decimal

_PLAIN = re.compile(r"\d{1,12}")
_MARKED = {
    ".": re.compile(r"\d{1,12}\.\d{1,6}|\d{1,3}(?:,\d{3})+\.\d{1,6}"),
    ",": re.compile(r"\d{1,12},\d{1,6}|\d{1,3}(?:\.\d{3})+,\d{1,6}"),
}
_THOUSANDS = {".": ",", ",": "."}
_LOOKS_GROUPED = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")


class UnreadableAmount(ValueError):
    """The text isn't a number or a date; the message says why."""


def read_amount(text: str, decimal_mark: str) -> Decimal:
    """Read the number in ``text``, written with the decimal mark agreed with its sender."""
    text = text.strip()
    if not text:
        raise UnreadableAmount("is empty")
    if text.startswith(("-", "−", "(")):
        raise UnreadableAmount("is negative")
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    if _LOOKS_GROUPED.fullmatch(text):
        raise UnreadableAmount("could be thousands or decimals")
    if _MARKED[decimal_mark].fullmatch(text):
        return Decimal(text.replace(_THOUSANDS[decimal_mark], "").replace(decimal_mark, "."))
    other = _THOUSANDS[decimal_mark]
    if _MARKED[other].fullmatch(text):
        raise UnreadableAmount(f"has the decimal mark `{other}` where `{decimal_mark}` was agreed")
    raise UnreadableAmount("is not a number")


def read_date(text: str, form: str) -> datetime.date:
    try:
        return datetime.datetime.strptime(text.strip(), form).date()
    except ValueError:
        raise UnreadableAmount("is not a date") from None


def rounded(value: Decimal, places: int) -> Decimal:
    """Round like a spreadsheet's ROUND: halves go away from zero."""
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
