"""Writes the workbook with openpyxl: formulas, never pasted values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

from openpyxl import Workbook
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet

from .draft import Draft, Entry
from .layout_checks import check_rows
from .layout_places import COSTING_ROW, Places
from .quotation import Quotation

SHEETS = ("Quotation", "Lines", "Prices", "Freight", "Rates", "Checks")
_NAVY = "1F3A5F"
_PALE = "E8EEF5"
_BAND = PatternFill("solid", fgColor=_NAVY)
_SOFT = PatternFill("solid", fgColor=_PALE)
_WHITE = Font(name="Calibri", bold=True, color="FFFFFF")
_PLAIN = Font(name="Calibri", size=10)
_RULE = Border(bottom=Side(style="thin", color="B8C4D6"))
_DATE = "d mmm yyyy"
_MONEY = "#,##0.00"
_PAGE_WIDTHS = {"A": 6, "B": 11, "C": 33, "D": 10, "E": 8, "F": 16, "G": 13, "H": 12}
_GREY = Font(name="Calibri", size=10, color="5B6B80")
_AFTER_NUMBER = Alignment(horizontal="left", vertical="center", indent=1)
_FORMATS = {
    "Lines": {"K": "#,##0.0000", "L": "0.0%", "M": "0.0%", "Q": "0.0%", "J": "0.000000",
              "R": "0.000", "S": "#,##0.00", "N": _MONEY, "O": _MONEY, "P": _MONEY, "H": _MONEY},
    "Prices": {"J": _MONEY, "K": _MONEY, "L": _MONEY, "N": _MONEY},
    "Freight": {"B": _MONEY, "C": _MONEY, "D": "#,##0.00", "E": "0.0%", "F": _MONEY, "G": _MONEY},
    "Rates": {"B": "0.0000", "D": "0.000000", "G": "0.0%"},
    "Checks": {"C": "#,##0.00##", "D": "#,##0.00##"},
    "Quotation": {"D": "#,##0.##", "F": _MONEY, "G": _MONEY},
}  # fmt: skip


def write_workbook(draft: Draft, quotation: Quotation, path: Path) -> None:
    """Write the file at ``path``, whole or not at all."""
    book = Workbook()
    book.remove(book[book.sheetnames[0]])
    sheets = {name: book.create_sheet(name) for name in SHEETS}
    for entry in draft.entries.values():
        _write(sheets[entry.sheet], entry)
    places = Places.of(quotation)
    _style_page(sheets["Quotation"], places)
    for name in SHEETS[1:]:
        _style_costing(sheets[name], name)
    book.properties.title = f"Quotation {quotation.number}"
    book.properties.creator = "quotation desk"
    book.calculation.fullCalcOnLoad = True
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new.xlsx")
    book.save(new)
    new.replace(path)


def _write(sheet: Worksheet, entry: Entry) -> None:
    cell = sheet[entry.ref]
    cell.font = _PLAIN
    if entry.formula is not None:
        cell.value = entry.formula
    elif isinstance(entry.value, Decimal):
        cell.value = float(entry.value)
        if entry.value == entry.value.to_integral_value():
            cell.value = int(entry.value)
    else:
        cell.value = entry.value
    if isinstance(entry.value, datetime.date):
        cell.number_format = _DATE
        cell.alignment = Alignment(horizontal="right")
    elif isinstance(entry.value, Decimal):
        column = "".join(letter for letter in entry.ref if letter.isalpha())
        cell.number_format = _FORMATS[entry.sheet].get(column, "General")


def _style_page(sheet: Worksheet, places: Places) -> None:
    for letter, width in _PAGE_WIDTHS.items():
        sheet.column_dimensions[letter].width = width
    _style_head(sheet)
    for letter in "ABCDEFGH":
        cell = sheet[f"{letter}{places.page_header}"]
        cell.fill, cell.font = _BAND, _WHITE
        right = Alignment(horizontal="right", vertical="center")
        cell.alignment = right if letter in "DFG" else _AFTER_NUMBER
    sheet.row_dimensions[places.page_header].height = 22
    for row in range(places.page_first, places.page_last + 1):
        sheet.row_dimensions[row].height = 20
        for letter in "ABCDEFGH":
            cell = sheet[f"{letter}{row}"]
            cell.border = _RULE
            cell.alignment = Alignment(vertical="center") if letter in "DFG" else _AFTER_NUMBER
            if (row - places.page_first) % 2:
                cell.fill = _SOFT
        sheet[f"A{row}"].number_format = "0"
    for row in range(places.goods, places.total + 1):
        sheet.row_dimensions[row].height = 18
        for letter in "FGH":
            cell = sheet[f"{letter}{row}"]
            cell.font = _GREY if letter != "G" else _PLAIN
            cell.alignment = Alignment(vertical="center") if letter == "G" else _AFTER_NUMBER
    sheet.row_dimensions[places.total].height = 24
    for letter in "FGH":
        cell = sheet[f"{letter}{places.total}"]
        cell.font, cell.fill = Font(name="Calibri", size=12, bold=True, color="FFFFFF"), _BAND
    for row in (places.terms, places.terms + 1):
        sheet[f"F{row}"].font = _GREY
        sheet[f"F{row}"].alignment = _AFTER_NUMBER
        sheet[f"G{row}"].alignment = Alignment(horizontal="right")
    _set_up_page(sheet, places)


def _style_head(sheet: Worksheet) -> None:
    """Style the head of the page: our name, the title, the customer and the quotation's data."""
    for row, height in ((1, 30), (2, 20), (3, 14), (4, 30), (5, 10)):
        sheet.row_dimensions[row].height = height
    for row in (1, 2):
        for letter in "ABCDEFGH":
            sheet[f"{letter}{row}"].fill = _BAND
        sheet[f"A{row}"].alignment = _AFTER_NUMBER
    sheet["A1"].font = Font(name="Calibri", size=18, bold=True, color="FFFFFF")
    sheet["A2"].font = Font(name="Calibri", size=10, color="FFFFFF")
    sheet["A4"].font = Font(name="Calibri", size=22, bold=True, color=_NAVY)
    sheet["A6"].font = Font(name="Calibri", size=11, bold=True)
    for row in range(6, 11):
        sheet.row_dimensions[row].height = 16
        sheet[f"F{row}"].font = _GREY
        sheet[f"F{row}"].alignment = _AFTER_NUMBER
        sheet[f"G{row}"].font = Font(name="Calibri", size=10, bold=True)
        sheet[f"G{row}"].alignment = Alignment(horizontal="right")


def _set_up_page(sheet: Worksheet, places: Places) -> None:
    sheet.sheet_view.showGridLines = False
    sheet.print_area = f"A1:H{places.terms + 4}"
    sheet.page_setup.orientation = "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToWidth = 1
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.page_margins.left = sheet.page_margins.right = 0.5
    sheet.page_margins.top = 0.5
    sheet.print_title_rows = f"{places.page_header}:{places.page_header}"
    sheet.print_options.horizontalCentered = True
    footer = sheet.oddFooter
    if footer is not None:
        footer.center.text = "Harbour Parts Supply · quotation desk"


def _style_costing(sheet: Worksheet, name: str) -> None:
    sheet["A1"].font = Font(name="Calibri", size=14, bold=True, color=_NAVY)
    header = {"Freight": (2, 6)}.get(name, (COSTING_ROW - 1,))
    for row in header:
        sheet.row_dimensions[row].height = 32
        for cell in sheet[row]:
            if cell.value is not None:
                cell.fill, cell.font = _BAND, _WHITE
                cell.alignment = Alignment(wrap_text=True, vertical="top")
    for column in sheet.columns:
        # Titles wrap, so only what stands below them says how wide a column must be.
        texts = [c.value for c in column[header[-1] :] if isinstance(c.value, str)]
        longest = max((len(text) for text in texts if not text.startswith("=")), default=0)
        letter = get_column_letter(column[0].column or 1)
        sheet.column_dimensions[letter].width = max(11, longest + 2)
    sheet.freeze_panes = f"A{header[-1] + 1}"
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToWidth = 1
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if name == "Checks":
        for row in check_rows():
            sheet[f"E{row}"].alignment = _AFTER_NUMBER
        sheet["E2"].font = Font(name="Calibri", size=12, bold=True, color=_NAVY)
