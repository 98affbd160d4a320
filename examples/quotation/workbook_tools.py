"""Tools over margin, workbook and release."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import openpyxl

from sopilot.protocols import ToolResult
from sopilot.values.json import JSON

from .case_tools import REQUEST
from .checking import check_workbook
from .desk import Desk, write_json
from .draft import Draft
from .layout import lay_out
from .workbook import SHEETS, write_workbook

MOST_PROBLEMS = 20
"""Problems to report. A wrong cell spoils every cell behind it, so the first ones suffice."""


def workbook_tools(
    desk: Desk, out: Path
) -> dict[str, tuple[str, Mapping[str, str], Callable[..., ToolResult]]]:
    work = _WorkbookWork(desk, out)
    return {
        "compute_margin": ("Computes total and margin.", REQUEST, work.compute_margin),
        "read_authority": (
            "Reads up to which total and down to which margin the desk may decide alone.",
            REQUEST,
            work.read_authority,
        ),
        "draft_output_plan": (
            "Drafts what the workbook will hold.",
            REQUEST,
            work.draft_output_plan,
        ),
        "write_workbook": (
            "Writes workbook, render report and calculation trace.",
            REQUEST,
            work.write_workbook,
        ),
        "check_workbook": (
            "Recalculates the written workbook and compares it with the calculation trace.",
            REQUEST,
            work.check_workbook,
        ),
        "release_quotation": (
            "Releases the quotation to the customer, on the desk's own authority.",
            REQUEST,
            lambda: work.release("the quotation desk"),
        ),
        "release_under_approval": (
            "Releases the quotation to the customer; needs the sales manager's approval.",
            REQUEST,
            lambda: work.release("the sales manager"),
        ),
    }


class _WorkbookWork:
    def __init__(self, desk: Desk, out: Path) -> None:
        self._desk = desk
        self._out = out

    # --- margin ---------------------------------------------------------------------

    def compute_margin(self) -> ToolResult:
        quotation = self._desk.quotation()
        totals = quotation.totals
        return ToolResult(
            True,
            {
                "total": float(totals.total),
                "currency": quotation.customer.currency,
                "margin": round(float(totals.margin), 6),
                "floor": float(quotation.rules.floor),
                "total_in_authority_currency": float(quotation.total_in),
            },
        )

    def read_authority(self) -> ToolResult:
        authority = self._desk.rules(self._desk.customer()).authority
        return ToolResult(
            True,
            {
                "role": authority.role,
                "largest_total": float(authority.largest_total),
                "currency": authority.currency,
                "least_margin": float(authority.least_margin),
            },
        )

    # --- the workbook ---------------------------------------------------------------

    def draft_output_plan(self) -> ToolResult:
        quotation = self._desk.quotation()
        draft = lay_out(quotation)
        plan: dict[str, JSON] = {
            "quotation": quotation.number,
            "file": f"{quotation.number}.xlsx",
            "sheets": [
                {"name": name, "formulas": _formulas(draft, name), "cells": _cells(draft, name)}
                for name in SHEETS
            ],
            "lines": [line.line for line in quotation.lines],
            "dropped": list(quotation.dropped),
            "customer_page": "Quotation",
        }
        return ToolResult(True, {"output_plan": plan})

    def write_workbook(self) -> ToolResult:
        quotation = self._desk.quotation()
        draft = lay_out(quotation)
        book = self._file(quotation.number)
        write_workbook(draft, quotation, book)
        trace = draft.trace()
        write_json(self._trace_file(), trace)
        notes = [item.problem for item in self._desk.open_items() if not item.blocking]
        report = {
            "file": book.name,
            "sheets": list(SHEETS),
            "formulas": draft.formulas,
            "cells": len(draft.entries),
            "customer_page": "Quotation",
            "notes": notes,
        }
        write_json(self._out / "render-report.json", report)
        self._spoil(book)
        return ToolResult(
            True,
            {
                "workbook": {
                    "file": book.name,
                    "sha256": _digest(book),
                    "formulas": draft.formulas,
                    "sheets": len(SHEETS),
                },
                "render_report": {
                    "file": "render-report.json",
                    "sha256": _digest(self._out / "render-report.json"),
                    "notes": len(notes),
                },
                "calculation_trace": {
                    "file": self._trace_file().name,
                    "sha256": _digest(self._trace_file()),
                    "entries": len(trace),
                },
            },
        )

    def check_workbook(self) -> ToolResult:
        number = self._desk.quotation().number
        book, trace = self._file(number), self._trace_file()
        if not book.exists() or not trace.exists():
            return ToolResult(False, {"error": "no workbook was written yet"})
        found = check_workbook(book, json.loads(trace.read_text(encoding="utf-8")))
        found["problems"] = found["problems"][:MOST_PROBLEMS]
        return ToolResult(True, {"file": book.name, "sha256": _digest(book), **found})

    def _spoil(self, book: Path) -> None:
        """Simulate a colleague who types over a formula, in the tasks that say so."""
        spoiled = int(self._desk.case.read().get("spoiled", 0))
        how_often = {"once": 1, "always": 1_000}.get(self._desk.inputs.spoil, 0)
        if spoiled >= how_often:
            return
        self._desk.case.decide("spoiled", spoiled + 1)
        opened = openpyxl.load_workbook(book)
        opened["Lines"]["N5"] = 9.99
        opened.save(book)
        opened.close()

    # --- release --------------------------------------------------------------------

    def release(self, authority: str) -> ToolResult:
        quotation = self._desk.quotation()
        book = self._file(quotation.number)
        checked = self.check_workbook().value
        if not isinstance(checked, Mapping) or not checked.get("consistent"):
            return ToolResult(False, {"error": "the workbook is not consistent"})
        outbox = self._out / "outbox"
        outbox.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(book, outbox / book.name)
        hand_over: dict[str, JSON] = {
            "quotation": quotation.number,
            "customer": quotation.customer.customer,
            "total": float(quotation.totals.total),
            "currency": quotation.customer.currency,
            "valid_until": quotation.valid_until.isoformat(),
            "file": f"outbox/{book.name}",
            "sha256": _digest(outbox / book.name),
            "released_by": authority,
        }
        write_json(outbox / f"{quotation.number}.json", hand_over)
        return ToolResult(True, {"hand_over": hand_over})

    def _file(self, number: str) -> Path:
        return self._out / f"{number}.xlsx"

    def _trace_file(self) -> Path:
        return self._out / "calculation-trace.json"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _formulas(draft: Draft, sheet: str) -> int:
    return sum(e.sheet == sheet and e.formula is not None for e in draft.entries.values())


def _cells(draft: Draft, sheet: str) -> int:
    return sum(e.sheet == sheet for e in draft.entries.values())
