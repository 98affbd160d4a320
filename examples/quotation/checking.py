"""Checks a written workbook against its calculation trace, from the file alone."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import openpyxl

from .layout_checks import ALL_PASS, PASSES, check_rows
from .recalculation import CannotCalculate, Recalculation, Scalar, serial

_TOLERANCE = 1e-6


def read_cells(path: Path) -> dict[str, object]:
    """Read every cell of the workbook, formulas as they are written."""
    book = openpyxl.load_workbook(path)
    try:
        return {
            f"{sheet.title}!{cell.coordinate}": cell.value
            for sheet in book.worksheets
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None
        }
    finally:
        book.close()


def check_workbook(path: Path, trace: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count the formulas of the file, recalculate its checks, and name every difference."""
    return check_cells(read_cells(path), trace)


def check_cells(cells: Mapping[str, object], trace: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    traced = {entry["cell"]: entry for entry in trace}
    problems = [
        f"{name} holds a number that no trace explains"
        for name, content in cells.items()
        if name not in traced and not isinstance(content, str)
    ]
    problems += [
        f"{name} holds a formula that no trace explains"
        for name, content in cells.items()
        if name not in traced and isinstance(content, str) and content.startswith("=")
    ]
    book = Recalculation(cells)
    for name, entry in traced.items():
        problem = _departure(name, entry, cells.get(name), book)
        if problem:
            problems.append(problem)
    checks = [_check(row, cells, book) for row in check_rows()]
    problems += [f"check fails: {one['check']}" for one in checks if one["result"] != PASSES]
    formulas = sum(isinstance(c, str) and c.startswith("=") for c in cells.values())
    consistent = not problems and _value(book, "Checks!E2") == ALL_PASS
    return {
        "consistent": consistent,
        "formulas": formulas,
        "checks": checks,
        "problems": problems,
    }


def _departure(
    name: str, entry: Mapping[str, Any], content: object, book: Recalculation
) -> str | None:
    formula = entry.get("formula")
    if formula is not None and content != formula:
        return f"{name} holds `{content}` where the formula {formula} belongs"
    value = _value(book, name)
    if isinstance(value, str) and value.startswith("#"):
        return f"{name} cannot be calculated: {value}"
    if not same(value, entry["value"]):
        return f"{name} comes to {value} where the calculation has {entry['value']}"
    return None


def same(value: Scalar, spelled: str) -> bool:
    """Whether a recalculated cell has the value in the trace."""
    if isinstance(value, str) or value is None:
        return value == spelled
    try:
        wanted = float(Decimal(spelled))
    except InvalidOperation:
        try:
            wanted = serial(datetime.date.fromisoformat(spelled))
        except ValueError:
            return False
    return abs(float(value) - wanted) <= _TOLERANCE * max(1.0, abs(wanted))


def _check(row: int, cells: Mapping[str, object], book: Recalculation) -> dict[str, Any]:
    return {"check": cells.get(f"Checks!B{row}"), "result": _value(book, f"Checks!E{row}")}


def _value(book: Recalculation, name: str) -> Scalar:
    try:
        return book.value(name)
    except CannotCalculate as problem:
        return f"#{problem}"
