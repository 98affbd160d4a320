"""The sheet Checks: figures that must agree before the quotation may be sent."""

from __future__ import annotations

import datetime
from decimal import Decimal

from .draft import Draft, Value
from .layout_places import COSTING_ROW, Places
from .open_items import Source
from .quotation import Quotation

FIRST = 5
PASSES = "OK"
ALL_PASS = "ALL CHECKS PASS"
_WITHIN = "ABS(C{r}-D{r})<=0.005"


def check_rows() -> range:
    return range(FIRST, FIRST + 11)


def lay_out_checks(draft: Draft, quotation: Quotation, places: Places) -> None:
    sheet, totals, page = "Checks", quotation.totals, places
    draft.text(sheet, "A1", "Consistency checks")
    for ref, title in (("A4", "No"), ("B4", "Check"), ("C4", "This"), ("D4", "That"),
                       ("E4", "Result")):  # fmt: skip
        draft.text(sheet, ref, title)
    goods, freight, tax, total = (
        f"Quotation!G{row}" for row in (page.goods, page.freight, page.tax, page.total)
    )
    needed = quotation.request.needed_by
    assert needed is not None
    asked = len(quotation.request.lines) - len(quotation.dropped)
    lowest = min(amounts.price for amounts in quotation.amounts)
    earliest = min(line.offer.listed.valid_to for line in quotation.lines)
    own_units = sum((line.base_quantity for line in quotation.lines), Decimal(0))
    sold, bought = f"SUM(Lines!{page.column('O')})", f"SUM(Lines!{page.column('P')})"
    margin = f"=({sold}-{bought})/{sold}"
    control = Source("calculation", "total in decimal arithmetic", str(totals.total))
    count = Source("request", f"{quotation.request.file} lines less dropped", str(asked))
    day = Source("request", f"{quotation.request.file} needed by, or as agreed", needed.isoformat())
    floor = quotation.rules.floor
    weight = quotation.weight
    Side = str | tuple[Value, Source]
    rows: tuple[tuple[str, str, Value, Side, Value, str], ...] = (
        ("The amounts on the page add up to its goods total",
         f"=SUM(Quotation!G{page.page_first}:G{page.page_last})", totals.goods,
         f"={goods}", totals.goods, _WITHIN),
        ("Page and costing agree about the goods",
         f"=SUM(Lines!{page.column('O')})", totals.goods, f"={goods}", totals.goods, _WITHIN),
        ("Goods, freight and tax make the total",
         f"={goods}+{freight}+{tax}", totals.total, f"={total}", totals.total, _WITHIN),
        ("Every line that was not dropped is quoted",
         f"=COUNT(Lines!{page.column('A')})", Decimal(len(quotation.lines)),
         (Decimal(asked), count), Decimal(asked), "C{r}=D{r}"),
        ("Quantities convert into the parts' own units",
         f"=SUMPRODUCT(Lines!{page.column('D')},Lines!{page.column('F')})", own_units,
         f"=SUM(Lines!{page.column('G')})", own_units, _WITHIN),
        ("The weight of the lines is the weight that freight is charged for",
         f"=SUM(Lines!{page.column('S')})", weight, "=Freight!C3", weight, _WITHIN),
        ("Suppliers' prices hold as long as the quotation",
         f"=MIN(Prices!{page.column('P')})", earliest, "=Quotation!G8", quotation.valid_until,
         "C{r}>=D{r}"),
        ("No price is zero or below",
         f"=MIN(Lines!{page.column('N')})", lowest,
         f"=Lines!N{COSTING_ROW}", quotation.amounts[0].price, "AND(C{r}>0,D{r}>0)"),
        ("The margin is not below the floor",
         margin, totals.margin, "=Rates!G8", floor, "C{r}>=D{r}"),
        ("The delivery arrives by the day it is needed",
         "=Freight!D3", quotation.chosen.arrives, (needed, day), needed, "C{r}<=D{r}"),
        ("The total agrees with the calculation beside the workbook",
         f"={total}", totals.total, (totals.total, control), totals.total, _WITHIN),
    )  # fmt: skip
    for r, (title, left, left_value, right, right_value, test) in zip(
        check_rows(), rows, strict=True
    ):
        draft.text(sheet, f"A{r}", str(r - FIRST + 1))
        draft.text(sheet, f"B{r}", title)
        draft.formula(sheet, f"C{r}", left, left_value, f"check {r - FIRST + 1} this")
        label = f"check {r - FIRST + 1} that"
        if isinstance(right, str):
            draft.formula(sheet, f"D{r}", right, right_value, label)
        else:
            _given(draft, f"D{r}", right, label)
        formula = f'=IF({test.format(r=r)},"{PASSES}","CHECK")'
        draft.formula(sheet, f"E{r}", formula, PASSES, f"check {r - FIRST + 1}")
    first, last = check_rows()[0], check_rows()[-1]
    draft.formula(
        sheet, "E2",
        f'=IF(COUNTIF(E{first}:E{last},"{PASSES}")={len(rows)},"{ALL_PASS}","CHECKS FAIL")',
        ALL_PASS, "all checks",
    )  # fmt: skip


def _given(draft: Draft, ref: str, side: tuple[Value, Source], label: str) -> None:
    value, source = side
    if isinstance(value, datetime.date):
        draft.date("Checks", ref, value, source, label)
    else:
        draft.number("Checks", ref, Decimal(value), source, label)
