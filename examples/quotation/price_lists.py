"""Price lists as suppliers send them, CSV or Excel.

The format was agreed with each supplier (``suppliers.yaml``). A row that
departs from it gives a problem with its place, never a guess.
"""

from __future__ import annotations

import csv
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils import get_column_letter

from .amounts import UnreadableAmount, read_amount, read_date
from .open_items import Source


@dataclass(frozen=True, slots=True)
class Break:
    """The price of ``per`` units from this quantity on."""

    quantity: Decimal
    price: Decimal
    source: Source


@dataclass(frozen=True, slots=True)
class ListPrice:
    """A usable row of a price list. The reader checks whether it is valid on a day."""

    supplier: str
    part: str
    unit: str
    per: Decimal
    currency: str
    breaks: tuple[Break, ...]
    valid_from: datetime.date
    valid_to: datetime.date
    lead_days: int
    minimum: Decimal
    sources: Mapping[str, Source]


@dataclass(frozen=True, slots=True)
class PriceProblem:
    """Why a row cannot be used. ``part`` is empty if the whole file cannot be read."""

    supplier: str
    part: str
    code: str
    problem: str
    source: Source


@dataclass(frozen=True, slots=True)
class _Cell:
    value: object
    place: str
    merged: bool = False

    @property
    def raw(self) -> str:
        return "" if self.value is None else str(self.value).strip()


class _BadCell(ValueError):
    def __init__(self, code: str, problem: str, cell: _Cell) -> None:
        super().__init__(problem)
        self.code = code
        self.cell = cell


def read_price_list(
    supplier: str, agreed: Mapping[str, Any], path: Path
) -> tuple[list[ListPrice], list[PriceProblem]]:
    """Read every row of the file as a price or as a problem."""
    columns: dict[str, Any] = agreed["columns"]
    titles = [*(t for n, t in columns.items() if n != "breaks"), *columns["breaks"]]
    prices: list[ListPrice] = []
    problems: list[PriceProblem] = []
    header: dict[str, int] | None = None
    seen: dict[str, int] = {}
    for row in _rows(path, agreed):
        if header is None:
            found = {cell.raw: index for index, cell in enumerate(row)}
            header = found if all(title in found for title in titles) else None
            continue
        cells = {title: row[header[title]] for title in titles if header[title] < len(row)}
        part = cells[columns["part"]].raw if columns["part"] in cells else ""
        if not part:
            continue
        seen[part] = seen.get(part, 0) + 1
        try:
            if len(cells) != len(titles):
                raise _BadCell("short_row", "has too few columns", row[0])
            prices.append(_price(supplier, agreed, cells))
        except _BadCell as bad:
            source = Source("price_list", bad.cell.place, bad.cell.raw)
            problems.append(PriceProblem(supplier, part, bad.code, str(bad), source))
    if header is None:
        source = Source("price_list", path.name)
        problems.append(
            PriceProblem(supplier, "", "no_header", "has not the agreed columns", source)
        )
    for part in [part for part, times in seen.items() if times > 1]:
        prices = [price for price in prices if price.part != part]
        source = Source("price_list", path.name, part)
        problems.append(PriceProblem(supplier, part, "listed_twice", "is listed twice", source))
    return prices, problems


def _price(supplier: str, agreed: Mapping[str, Any], cells: Mapping[str, _Cell]) -> ListPrice:
    columns = agreed["columns"]
    for cell in cells.values():
        if cell.merged:
            raise _BadCell("merged_cells", "lies in merged cells", cell)
    mark, form = agreed["decimal_mark"], agreed["date"]
    named = {name: cells[title] for name, title in columns.items() if name != "breaks"}
    numbers = {name: _number(named[name], mark) for name in ("per", "lead_days", "minimum")}
    breaks = tuple(
        Break(Decimal(quantity), _positive(cells[title], mark), _source(cells[title]))
        for quantity, title in zip(agreed["break_quantities"], columns["breaks"], strict=True)
    )
    for lower, higher in itertools.pairwise(breaks):
        if higher.price > lower.price:
            cell = cells[columns["breaks"][breaks.index(higher)]]
            raise _BadCell("rising_price", "is above the price for a smaller quantity", cell)
    if numbers["per"] <= 0:
        raise _BadCell("bad_price", "is not above zero", named["per"])
    for name in ("unit", "currency"):
        if not named[name].raw:
            raise _BadCell(f"no_{name}", f"has no {name}", named[name])
    return ListPrice(
        supplier,
        named["part"].raw,
        named["unit"].raw,
        numbers["per"],
        named["currency"].raw,
        breaks,
        _date(named["valid_from"], form),
        _date(named["valid_to"], form),
        int(numbers["lead_days"]),
        numbers["minimum"],
        {name: _source(cell) for name, cell in named.items()},
    )


def _source(cell: _Cell) -> Source:
    return Source("price_list", cell.place, cell.raw)


def _number(cell: _Cell, mark: str) -> Decimal:
    value = cell.value
    if isinstance(value, bool | datetime.date):
        raise _BadCell("unreadable_number", "is not a number", cell)
    if isinstance(value, int | float):
        # A number in Excel has no mark; its shortest spelling is what was typed.
        if value < 0:
            raise _BadCell("negative_number", "is negative", cell)
        return Decimal(repr(value))
    if cell.raw.startswith("="):
        raise _BadCell("formula", "is a formula, not a price", cell)
    try:
        return read_amount(cell.raw, mark)
    except UnreadableAmount as problem:
        code = "negative_number" if "negative" in str(problem) else "unreadable_number"
        raise _BadCell(code, str(problem), cell) from None


def _positive(cell: _Cell, mark: str) -> Decimal:
    price = _number(cell, mark)
    if price <= 0:
        raise _BadCell("bad_price", "is not above zero", cell)
    return price


def _date(cell: _Cell, form: str) -> datetime.date:
    if isinstance(cell.value, datetime.datetime):
        return cell.value.date()
    try:
        return read_date(cell.raw, form)
    except UnreadableAmount as problem:
        raise _BadCell("unreadable_date", str(problem), cell) from None


def _rows(path: Path, agreed: Mapping[str, Any]) -> Iterator[Sequence[_Cell]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=agreed["delimiter"])
            for number, texts in enumerate(reader, start=1):
                yield [
                    _Cell(text, f"{path.name} row {number} column {index}")
                    for index, text in enumerate(texts, start=1)
                ]
        return
    book = openpyxl.load_workbook(path)
    try:
        sheet = book[agreed["sheet"]]
        merged = {place for area in sheet.merged_cells.ranges for place in area.cells}
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            yield [
                _Cell(
                    value,
                    f"{path.name} {sheet.title}!{get_column_letter(index)}{number}",
                    (number, index) in merged,
                )
                for index, value in enumerate(row, start=1)
            ]
    finally:
        book.close()
