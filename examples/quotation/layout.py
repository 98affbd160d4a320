"""The workbook's cells: four costing sheets, a page for the customer, and the checks."""

from __future__ import annotations

from decimal import Decimal

from .calculation import VALID_DAYS
from .draft import Draft
from .layout_checks import lay_out_checks
from .layout_costing import lay_out_freight, lay_out_lines, lay_out_prices, lay_out_rates
from .layout_places import COSTING_ROW, Places
from .open_items import Source
from .quotation import Quotation

COMPANY = "Harbour Parts Supply"
PAGE_HEADER = (
    "Pos", "Part", "Description", "Quantity", "Unit", "Unit price", "Amount", "Delivery",
)  # fmt: skip


def lay_out(quotation: Quotation) -> Draft:
    draft = Draft()
    places = Places.of(quotation)
    lay_out_page(draft, quotation, places)
    lay_out_lines(draft, quotation, places)
    lay_out_prices(draft, quotation, places)
    lay_out_freight(draft, quotation, places)
    lay_out_rates(draft, quotation, places)
    lay_out_checks(draft, quotation, places)
    return draft


def lay_out_page(draft: Draft, quotation: Quotation, places: Places) -> None:
    """The page that goes to the customer."""
    customer, request = quotation.customer, quotation.request
    for ref, text in (
        ("A1", COMPANY),
        ("A2", "Valves, pumps, hoses and fasteners · Havenkade 1, 3000 Port City"),
        ("A4", "Quotation"),
        ("A6", customer.name),
        ("A7", customer.address),
        ("A8", f"Customer {customer.customer}"),
        ("A10", f"Deliver to {request.destination}"),
        ("A12", "Thank you for your request. We are pleased to offer:"),
        ("F6", "Number"), ("G6", quotation.number),
        ("F7", "Date"), ("F8", "Valid until"),
        ("F9", "Your request"), ("G9", request.request),
        ("F10", "Currency"), ("G10", customer.currency),
    ):  # fmt: skip
        draft.text("Quotation", ref, text)
    draft.date("Quotation", "G7", quotation.today, Source("clock", "day of the run"), "date")
    draft.formula(
        "Quotation", "G8", f"=MIN(G7+{VALID_DAYS},MIN(Prices!{places.column('P')}))",
        quotation.valid_until, "valid until",
    )  # fmt: skip
    for column, title in zip("ABCDEFGH", PAGE_HEADER, strict=True):
        draft.text("Quotation", f"{column}{places.page_header}", title)
    _lines(draft, quotation, places)
    _totals(draft, quotation, places)
    _terms(draft, quotation, places)


def _lines(draft: Draft, quotation: Quotation, places: Places) -> None:
    for index, (line, amounts) in enumerate(zip(quotation.lines, quotation.amounts, strict=True)):
        row, cost = places.page_first + index, COSTING_ROW + index
        where = f"line {line.line}"
        draft.formula("Quotation", f"A{row}", f"=Lines!A{cost}", line.line, f"{where} position")
        draft.text("Quotation", f"B{row}", line.part.part)
        draft.text("Quotation", f"C{row}", line.part.description)
        quantity = line.quantity
        draft.formula("Quotation", f"D{row}", f"=Lines!D{cost}", quantity, f"{where} quantity")
        draft.text("Quotation", f"E{row}", line.unit)
        draft.formula("Quotation", f"F{row}", f"=Lines!N{cost}", amounts.price, f"{where} price")
        draft.formula("Quotation", f"G{row}", f"=Lines!O{cost}", amounts.total, f"{where} amount")
        supply = "from stock" if line.supply_days <= 1 else f"{line.supply_days} days"
        draft.formula(
            "Quotation", f"H{row}",
            f'=IF(Lines!T{cost}<=1,"from stock",Lines!T{cost}&" days")', supply,
            f"{where} delivery",
        )  # fmt: skip


def _totals(draft: Draft, quotation: Quotation, places: Places) -> None:
    totals = quotation.totals
    page = "Quotation"
    rows = (
        (places.goods, "Goods", f"=SUM(G{places.page_first}:G{places.page_last})", totals.goods),
        (places.freight, f"Freight, {quotation.chosen.service}", "=Freight!B3", totals.freight),
        (
            places.tax,
            "Value added tax",
            f"=ROUND((G{places.goods}+G{places.freight})*Rates!G7,2)",
            totals.tax,
        ),
        (
            places.total,
            "Total",
            f"=G{places.goods}+G{places.freight}+G{places.tax}",
            totals.total,
        ),
    )
    for row, text, formula, value in rows:
        draft.text(page, f"F{row}", text)
        draft.formula(page, f"G{row}", formula, value, text.lower())
        draft.text(page, f"H{row}", quotation.customer.currency)


def _terms(draft: Draft, quotation: Quotation, places: Places) -> None:
    row = places.terms
    terms = [
        f"Payment: {quotation.customer.payment}.",
        "Prices hold until the date above, for the quantities named.",
        "One delivery; it leaves when the last line is ready.",
    ]
    if quotation.dropped:
        named = ", ".join(str(line) for line in quotation.dropped)
        terms.append(f"Not quoted, as agreed: line {named} of your request.")
    for offset, text in enumerate(terms):
        draft.text("Quotation", f"A{row + offset}", text)
    draft.text("Quotation", f"F{row}", "Arrives on")
    draft.formula("Quotation", f"G{row}", "=Freight!D3", quotation.chosen.arrives, "arrival")
    draft.text("Quotation", f"F{row + 1}", "Weight, kg")
    draft.formula(
        "Quotation", f"G{row + 1}", f"=SUM(Lines!{places.column('S')})",
        Decimal(quotation.weight), "weight",
    )  # fmt: skip
