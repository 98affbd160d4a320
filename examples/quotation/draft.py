"""A workbook before it is written: every cell with its value and the origin of it.

No number gets in without a source or a formula, so the calculation trace is
complete by construction.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from openpyxl.formula import Tokenizer
from openpyxl.utils import range_boundaries
from openpyxl.utils.cell import get_column_letter

from .open_items import Source

Value = Decimal | datetime.date | str


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell. ``value`` is the value it must show, or its formula's result."""

    sheet: str
    ref: str
    value: Value
    label: str = ""
    formula: str | None = None
    source: Source | None = None

    @property
    def name(self) -> str:
        return f"{self.sheet}!{self.ref}"

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str) and self.formula is None


@dataclass(slots=True)
class Draft:
    entries: dict[str, Entry] = field(default_factory=dict)

    def text(self, sheet: str, ref: str, text: str) -> None:
        self._add(Entry(sheet, ref, text))

    def number(
        self, sheet: str, ref: str, value: Decimal | int, source: Source, label: str
    ) -> None:
        self._add(Entry(sheet, ref, Decimal(value), label, source=source))

    def date(self, sheet: str, ref: str, value: datetime.date, source: Source, label: str) -> None:
        self._add(Entry(sheet, ref, value, label, source=source))

    def formula(self, sheet: str, ref: str, formula: str, value: Value | int, label: str) -> None:
        value = Decimal(value) if isinstance(value, int) else value
        self._add(Entry(sheet, ref, value, label, formula=formula))

    def _add(self, entry: Entry) -> None:
        if entry.name in self.entries:
            raise ValueError(f"{entry.name} is filled twice")
        self.entries[entry.name] = entry

    @property
    def formulas(self) -> int:
        return sum(entry.formula is not None for entry in self.entries.values())

    def trace(self) -> list[dict[str, Any]]:
        """The calculation trace: every cell that is not plain text."""
        return [_traced(entry) for entry in self.entries.values() if not entry.is_text]


def _traced(entry: Entry) -> dict[str, Any]:
    traced: dict[str, Any] = {
        "cell": entry.name,
        "label": entry.label,
        "value": spelled(entry.value),
    }
    if entry.formula is not None:
        traced["formula"] = entry.formula
        traced["from"] = references(entry.formula, entry.sheet)
    if entry.source is not None:
        traced["source"] = entry.source.as_json()
    return traced


def spelled(value: Value) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return value if isinstance(value, str) else value.isoformat()


def references(formula: str, sheet: str) -> list[str]:
    """The cells that a formula reads, in order and without repetitions, with their sheet."""
    cells: dict[str, None] = {}
    for token in Tokenizer(formula).items:
        if token.type == "OPERAND" and token.subtype == "RANGE":
            cells |= dict.fromkeys(expand(token.value, sheet))
    return list(cells)


def expand(area: str, sheet: str) -> list[str]:
    """The cells of a range such as ``Lines!A1:B2``, row by row."""
    if "!" in area:
        sheet, area = area.rsplit("!", 1)
    left, top, right, bottom = range_boundaries(area.replace("$", ""))
    assert None not in (left, top, right, bottom)
    return [
        f"{sheet}!{get_column_letter(column)}{row}"
        for row in range(int(top or 0), int(bottom or 0) + 1)
        for column in range(int(left or 0), int(right or 0) + 1)
    ]
