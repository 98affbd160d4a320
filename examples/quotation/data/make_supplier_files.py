"""Writes the Excel price lists of this example: the good one and the one of task 5.

Run it from anywhere: ``python examples/quotation/data/make_supplier_files.py``.
The files are kept beside it, because suppliers send files, not scripts.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

HERE = Path(__file__).parent
HEADER = (
    "Item", "Customer part", "Description", "UoM", "Per", "Cur", "1+", "10+", "25+",
    "From", "Until", "Lead days", "MOQ",
)  # fmt: skip
FROM, UNTIL = datetime.date(2026, 7, 1), datetime.date(2026, 12, 31)
Row = tuple[object, ...]
GOOD: tuple[Row, ...] = (
    (1, "VL-3080", "BFV DN80", "ea", 1, "USD", 118.5, 109.0, 101.25, FROM, UNTIL, 21, 1),
    (2, "VL-3100", "BFV DN100", "ea", 1, "USD", 146.0, 134.5, 126.75, FROM, UNTIL, 21, 1),
    (3, "PU-5200", "Pump 5.5 kW", "ea", 1, "USD", 1890.0, 1795.0, 1720.0, FROM, UNTIL, 35, 1),
    (4, "PU-5300", "Pump 11 kW", "ea", 1, "USD", 4260.0, 4075.0, 3980.0, FROM, UNTIL, 42, 1),
)


def new_list() -> tuple[Workbook, Worksheet]:
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Prices"
    sheet["A1"] = "Bering Valves & Pumps"
    sheet["A2"] = "Net prices, ex works"
    sheet.append([])
    sheet.append(list(HEADER))
    return book, sheet


def good() -> Workbook:
    book, sheet = new_list()
    for row in GOOD:
        sheet.append(list(row))
    return book


def with_merged_cells() -> Workbook:
    """Let two valves share a merged price cell, as in lists made for the eye."""
    book, sheet = new_list()
    for row in GOOD:
        sheet.append(list(row))
    sheet.merge_cells("G5:G6")
    return book


def main() -> None:
    good().save(HERE / "prices" / "bering.xlsx")
    with_merged_cells().save(HERE.parent / "wrong_inputs" / "bering.xlsx")


if __name__ == "__main__":
    main()
