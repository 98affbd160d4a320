"""The sheets behind the page: Lines, Prices, Freight, Rates."""

from __future__ import annotations

from .amounts import rounded
from .draft import Draft
from .layout_places import COSTING_ROW, Places
from .open_items import Source
from .quotation import Quotation

LINES_HEADER = (
    "Pos", "Part", "Supplier", "Quantity", "Unit", "Own units in one", "Own units", "List price",
    "Per", "Rate", "Cost of one own unit", "Target margin", "Discount", "Price", "Amount", "Cost",
    "Margin", "Weight of one", "Weight, kg", "Supply days",
)  # fmt: skip
PRICES_HEADER = (
    "Pos", "Part", "Supplier", "Currency", "Per", "Own units in list unit", "From 1", "From 2",
    "From 3", "Price 1", "Price 2", "Price 3", "Looked up for", "List price", "Valid from",
    "Valid to", "Lead days", "Place in the list",
)  # fmt: skip
FREIGHT_HEADER = (
    "Service", "Base, EUR", "Per kg, EUR", "Weight, kg", "Fuel surcharge", "Net, EUR", "Charge",
    "Transit days", "Leaves", "Arrives",
)  # fmt: skip


def _header(draft: Draft, sheet: str, row: int, titles: tuple[str, ...]) -> None:
    for index, title in enumerate(titles):
        draft.text(sheet, f"{chr(ord('A') + index)}{row}", title)


def lay_out_lines(draft: Draft, quotation: Quotation, places: Places) -> None:
    draft.text("Lines", "A1", "Costing by line")
    draft.text("Lines", "A2", f"Amounts in {quotation.customer.currency}; internal")
    _header(draft, "Lines", COSTING_ROW - 1, LINES_HEADER)
    rules = quotation.rules
    for index, (line, amounts) in enumerate(zip(quotation.lines, quotation.amounts, strict=True)):
        r = COSTING_ROW + index
        offer, where = line.offer, f"line {line.line}"
        listed = offer.break_at(line.base_quantity)
        rate_row = places.rate_row(offer.listed.currency)
        position = Source("request", line.quantity_source.place, str(line.line))
        days = (
            Source("rule", "goods in stock leave the next day", str(line.supply_days))
            if line.from_stock
            else offer.listed.sources["lead_days"]
        )
        draft.number("Lines", f"A{r}", line.line, position, f"{where} position")
        draft.text("Lines", f"B{r}", line.part.part)
        draft.text("Lines", f"C{r}", quotation.supplier_names[offer.listed.supplier])
        draft.number("Lines", f"D{r}", line.quantity, line.quantity_source, f"{where} quantity")
        draft.text("Lines", f"E{r}", line.unit)
        draft.number("Lines", f"F{r}", line.factor, line.factor_source, f"{where} factor")
        for column, formula, value, label in (
            ("G", f"=D{r}*F{r}", line.base_quantity, "own units"),
            ("H", f"=Prices!N{r}", listed.price, "list price"),
            ("I", f"=Prices!E{r}*Prices!F{r}", offer.listed.per * offer.unit_factor, "per"),
            ("J", f"=Rates!D{rate_row}", offer.rate, "rate"),
            ("K", f"=ROUND(H{r}/I{r}*J{r},4)", amounts.cost, "cost of one"),
            ("L", "=Rates!G5", rules.target_margin, "target margin"),
            ("M", "=Rates!G6", quotation.customer.discount, "discount"),
            ("N", f"=ROUND(K{r}*F{r}/(1-L{r})*(1-M{r}),2)", amounts.price, "price"),
            ("O", f"=ROUND(N{r}*D{r},2)", amounts.total, "amount"),
            ("P", f"=ROUND(K{r}*G{r},2)", amounts.total_cost, "cost"),
            ("Q", f"=(O{r}-P{r})/O{r}", amounts.margin, "margin"),
        ):
            draft.formula("Lines", f"{column}{r}", formula, value, f"{where} {label}")
        draft.number("Lines", f"R{r}", line.weight_kg, line.weight_source, f"{where} unit weight")
        draft.formula("Lines", f"S{r}", f"=G{r}*R{r}", amounts.weight, f"{where} weight")
        draft.number("Lines", f"T{r}", line.supply_days, days, f"{where} supply days")


def lay_out_prices(draft: Draft, quotation: Quotation, places: Places) -> None:
    draft.text("Prices", "A1", "Suppliers' list prices")
    draft.text(
        "Prices", "A2", "As their files have them; the volume break follows from the quantity"
    )
    _header(draft, "Prices", COSTING_ROW - 1, PRICES_HEADER)
    for index, line in enumerate(quotation.lines):
        r = COSTING_ROW + index
        offer, where = line.offer, f"line {line.line}"
        listed = offer.listed
        draft.formula("Prices", f"A{r}", f"=Lines!A{r}", line.line, f"{where} position")
        draft.text("Prices", f"B{r}", line.part.part)
        draft.text("Prices", f"C{r}", quotation.supplier_names[listed.supplier])
        draft.text("Prices", f"D{r}", listed.currency)
        draft.number("Prices", f"E{r}", listed.per, listed.sources["per"], f"{where} price per")
        draft.number("Prices", f"F{r}", offer.unit_factor, offer.unit_source, f"{where} list unit")
        for one, from_column, price_column in zip(listed.breaks, "GHI", "JKL", strict=True):
            agreed = Source("format", f"suppliers.yaml {listed.supplier} break_quantities",
                            str(one.quantity))  # fmt: skip
            draft.number("Prices", f"{from_column}{r}", one.quantity, agreed, f"{where} break")
            draft.number(
                "Prices", f"{price_column}{r}", one.price, one.source, f"{where} break price"
            )
        wanted = line.base_quantity / offer.unit_factor
        price = offer.break_at(line.base_quantity).price
        draft.formula("Prices", f"M{r}", f"=Lines!G{r}/F{r}", wanted, f"{where} list units")
        draft.formula(
            "Prices", f"N{r}", f"=LOOKUP(M{r},G{r}:I{r},J{r}:L{r})", price, f"{where} list price"
        )
        for column, name, day in (
            ("O", "valid_from", listed.valid_from),
            ("P", "valid_to", listed.valid_to),
        ):
            draft.date("Prices", f"{column}{r}", day, listed.sources[name], f"{where} {name}")
        draft.number(
            "Prices", f"Q{r}", listed.lead_days, listed.sources["lead_days"], f"{where} lead days"
        )
        draft.text("Prices", f"R{r}", listed.sources["part"].place)


def lay_out_freight(draft: Draft, quotation: Quotation, places: Places) -> None:
    sheet = "Freight"
    rows = places.option_rows()
    chosen = quotation.chosen
    first, last = rows[0], rows[-1]
    draft.text(sheet, "A1", f"Freight to {quotation.request.destination}")
    _header(draft, sheet, 2, ("Chosen", "Charge", "Weight, kg", "Arrives"))
    draft.text(sheet, "A3", chosen.service)
    found = f"MATCH(A3,A{first}:A{last},0)"
    for ref, column, value, label in (
        ("B3", "G", quotation.charge(chosen), "freight charge"),
        ("C3", "D", quotation.weight, "weight charged"),
        ("D3", "J", chosen.arrives, "arrival"),
    ):
        formula = f"=INDEX({column}{first}:{column}{last},{found})"
        draft.formula(sheet, ref, formula, value, label)
    _header(draft, sheet, first - 1, FREIGHT_HEADER)
    euro = places.rate_row("EUR")
    for r, option in zip(rows, quotation.options, strict=True):
        where = f"freight {option.service}"
        net = option.base + option.per_kg * quotation.weight
        sources = option.sources
        draft.text(sheet, f"A{r}", option.service)
        draft.number(sheet, f"B{r}", option.base, sources["base_eur"], f"{where} base")
        draft.number(sheet, f"C{r}", option.per_kg, sources["per_kg_eur"], f"{where} per kg")
        draft.formula(
            sheet, f"D{r}", f"=SUM(Lines!{places.column('S')})", quotation.weight, f"{where} weight"
        )
        draft.number(sheet, f"E{r}", option.fuel, sources["fuel"], f"{where} fuel")
        draft.formula(sheet, f"F{r}", f"=B{r}+C{r}*D{r}", net, f"{where} net")
        draft.formula(
            sheet, f"G{r}", f"=ROUND(F{r}*(1+E{r})*Rates!D{euro},2)",
            quotation.charge(option), f"{where} charge",
        )  # fmt: skip
        transit = sources["transit_days"]
        draft.number(sheet, f"H{r}", option.transit_days, transit, f"{where} transit")
        draft.formula(
            sheet, f"I{r}", f"=Quotation!G7+MAX(Lines!{places.column('T')})",
            quotation.leaves, f"{where} leaves",
        )  # fmt: skip
        draft.formula(sheet, f"J{r}", f"=I{r}+H{r}", option.arrives, f"{where} arrives")


def lay_out_rates(draft: Draft, quotation: Quotation, places: Places) -> None:
    sheet = "Rates"
    own = places.rate_row(quotation.customer.currency)
    draft.text(sheet, "A1", "Exchange rates and margin rules")
    titles = ("Currency", "Per euro", "As of", f"In {quotation.customer.currency}")
    _header(draft, sheet, 4, titles)
    quoted = quotation.rates[quotation.customer.currency]
    for currency in places.currencies:
        r, rate = places.rate_row(currency), quotation.rates[currency]
        place = f"exchange_rates/{currency}"
        source = Source("catalogue", f"{place}/per_euro", str(rate.per_euro))
        draft.text(sheet, f"A{r}", currency)
        draft.number(sheet, f"B{r}", rate.per_euro, source, f"{currency} per euro")
        day = Source("catalogue", f"{place}/as_of", rate.as_of.isoformat())
        draft.date(sheet, f"C{r}", rate.as_of, day, f"{currency} as of")
        into = rounded(quoted.per_euro / rate.per_euro, 6)
        draft.formula(sheet, f"D{r}", f"=ROUND(B{own}/B{r},6)", into, f"{currency} rate")
    customer, rules = quotation.customer, quotation.rules
    draft.text(sheet, "F4", "Rule")
    draft.text(sheet, "G4", "Value")
    for r, title, value, place in (
        (5, "Target margin", rules.target_margin, f"margins/{customer.tier}/target"),
        (6, "Discount", customer.discount, f"customers/{customer.customer}/discount"),
        (7, "Value added tax", customer.tax_rate, f"customers/{customer.customer}/tax_rate"),
        (8, "Least margin", rules.floor, "margins/floor/target"),
    ):
        draft.text(sheet, f"F{r}", title)
        draft.number(sheet, f"G{r}", value, Source("catalogue", place, str(value)), title.lower())
