"""Assesses a request by catalogue, stock and price lists: lines to quote, and open items.

A pure function of the inputs and of what was settled, so every answer is
computed from the present decisions.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from .amounts import UnreadableAmount, read_amount
from .catalogue import Catalogue, Part
from .open_items import Kind, OpenItem, Source
from .request import Request, RequestLine
from .supply import Offer, Supply

DROP_LINE = "drop_line"
_ONE_DAY = 1


@dataclass(frozen=True, slots=True)
class QuotedLine:
    """A line with everything its price follows from. ``factor`` turns the customer's unit into
    the part's own; ``weight_kg`` and ``cost`` are for one of the part's own unit."""

    line: int
    part: Part
    quantity: Decimal
    quantity_source: Source
    unit: str
    factor: Decimal
    factor_source: Source
    weight_kg: Decimal
    weight_source: Source
    supply_days: int
    from_stock: bool
    offer: Offer

    @property
    def base_quantity(self) -> Decimal:
        return self.quantity * self.factor


@dataclass(frozen=True, slots=True)
class Assessment:
    lines: tuple[QuotedLine, ...]
    items: tuple[OpenItem, ...]
    dropped: tuple[int, ...]

    def open_in(self, *stages: str) -> list[OpenItem]:
        return [item for item in self.items if item.blocking and item.stage in stages]

    @property
    def blocking(self) -> list[OpenItem]:
        return [item for item in self.items if item.blocking]


class _Open(Exception):
    """The line must wait until this item is settled."""

    def __init__(self, item: OpenItem) -> None:
        super().__init__(item.problem)
        self.item = item


class _Dropped(Exception):
    """The customer does without the line."""


def assess(
    request: Request,
    catalogue: Catalogue,
    supply: Supply,
    settled: Mapping[str, Any],
    today: datetime.date,
) -> Assessment:
    lines: list[QuotedLine] = []
    items: list[OpenItem] = []
    dropped: list[int] = []
    for line in request.lines:
        one = _Line(line, catalogue, supply, settled, today)
        try:
            lines.append(one.quoted())
        except _Open as open_:
            items.append(open_.item)
        except _Dropped:
            dropped.append(line.line)
        items.extend(one.notes)
    if not lines and not items:
        items.append(
            OpenItem(
                "order-empty",
                Kind.CANNOT_QUOTE,
                "prices",
                "nothing_left",
                "no line is left to be quoted",
                remedy="Ask for at least one line that can be delivered.",
            )
        )
    return Assessment(tuple(lines), tuple(items), tuple(dropped))


class _Line:
    """Assesses one line by catalogue, stock and price lists."""

    def __init__(
        self,
        line: RequestLine,
        catalogue: Catalogue,
        supply: Supply,
        settled: Mapping[str, Any],
        today: datetime.date,
    ) -> None:
        self._line = line
        self._catalogue = catalogue
        self._supply = supply
        self._settled = settled
        self._today = today
        self.notes: list[OpenItem] = []

    def quoted(self) -> QuotedLine:
        part = self._part()
        factor, factor_source = self._factor(part)
        weight, weight_source = self._weight(part)
        quantity, source = self._line.quantity, self._line.source
        offers = self._offers(part)
        quantity, source = self._at_least(offers, quantity, source, factor)
        usable = [o for o in offers if o.minimum <= quantity * factor]
        offer = min(usable, key=lambda one: one.cost_at(quantity * factor))
        quantity, source, days, from_stock = self._in_stock(part, quantity, source, factor, offer)
        return QuotedLine(
            self._line.line, part, quantity, source, self._unit_name(), factor, factor_source,
            weight, weight_source, days, from_stock, offer,
        )  # fmt: skip

    # --- the part -------------------------------------------------------------------

    def _part(self) -> Part:
        part = self._catalogue.part(self._line.part)
        if part is None:
            raise self._open(
                Kind.CANNOT_QUOTE, "parts", "unknown_part", "is not in the catalogue",
                "Name a part of the catalogue, or leave the line out.",
            )  # fmt: skip
        if part.status != "discontinued":
            return part
        successor = self._catalogue.part(part.successor) if part.successor else None
        if successor is None:
            raise self._open(
                Kind.CANNOT_QUOTE, "parts", "discontinued", "is discontinued without a successor",
                "Name another part, or leave the line out.",
            )  # fmt: skip
        if self._answer(Kind.DISCONTINUED) != "yes":
            raise self._open(
                Kind.DISCONTINUED, "parts", "discontinued",
                f"is discontinued; its successor is {successor.part}",
                f"Accept {successor.part} ({successor.description}).",
            )  # fmt: skip
        return successor

    def _unit_name(self) -> str:
        told = self._answer(Kind.UNCLEAR_UNIT)
        return str(told) if told is not None else self._line.unit

    def _factor(self, part: Part) -> tuple[Decimal, Source]:
        name = self._unit_name()
        unit = self._catalogue.unit_named(name)
        if unit is None:
            raise self._open(
                Kind.UNCLEAR_UNIT, "parts", "unknown_unit",
                f"is ordered in `{name}`, a unit nobody here knows",
                f"Say the quantity in {part.unit}.",
            )  # fmt: skip
        found = self._catalogue.factor(part, unit)
        if found is None:
            raise self._open(
                Kind.UNCLEAR_UNIT, "parts", "conflicting_units",
                f"is ordered in {unit} and sold in {part.unit}, with no fixed ratio",
                f"Say the quantity in {part.unit}.",
            )  # fmt: skip
        return found

    def _weight(self, part: Part) -> tuple[Decimal, Source]:
        if part.weight_kg is not None:
            place = f"parts/{part.part}/weight_kg"
            return part.weight_kg, Source("catalogue", place, str(part.weight_kg))
        told = self._answer(Kind.MISSING_WEIGHT)
        try:
            weight = read_amount(str(told), ".") if told is not None else Decimal(0)
        except UnreadableAmount:
            weight = Decimal(0)
        if weight <= 0:
            raise self._open(
                Kind.MISSING_WEIGHT, "parts", "missing_weight", "has no weight in the catalogue",
                f"Weigh one {part.unit} and say its weight in kg.",
            )  # fmt: skip
        return weight, self._told(Kind.MISSING_WEIGHT)

    # --- prices ---------------------------------------------------------------------

    def _offers(self, part: Part) -> list[Offer]:
        offers, problems = self._supply.offers(part, self._today)
        if offers:
            self.notes += [
                replace(self._item(Kind.CANNOT_QUOTE, p.stage, p.code, p.problem), blocking=False,
                        id=f"L{self._line.line}-price-{p.supplier}", source=p.source)
                for p in problems
            ]  # fmt: skip
            return offers
        if self._answer(Kind.CANNOT_QUOTE) == DROP_LINE:
            raise _Dropped
        if not problems:
            raise self._open(
                Kind.CANNOT_QUOTE, "prices", "no_price", "is on no supplier's list",
                "Get a price from a supplier, or leave the line out.",
            )  # fmt: skip
        item = self._item(
            Kind.CANNOT_QUOTE, problems[0].stage, problems[0].code,
            "; ".join(problem.problem for problem in problems),
            "Get a corrected list from the supplier, or leave the line out.",
        )  # fmt: skip
        raise _Open(replace(item, source=problems[0].source))

    def _at_least(
        self, offers: list[Offer], quantity: Decimal, source: Source, factor: Decimal
    ) -> tuple[Decimal, Source]:
        least = min(offer.minimum for offer in offers)
        if quantity * factor >= least:
            return quantity, source
        answer = self._answer(Kind.BELOW_MINIMUM)
        if answer == DROP_LINE:
            raise _Dropped
        if answer == "raise_to_minimum":
            raised = (least / factor).to_integral_value(ROUND_CEILING)
            return raised, self._told(Kind.BELOW_MINIMUM)
        raise self._open(
            Kind.BELOW_MINIMUM, "prices", "below_minimum",
            f"is ordered below the supplier's minimum of {least:f}",
            "Raise the quantity to the minimum, or leave the line out.",
        )  # fmt: skip

    # --- stock ----------------------------------------------------------------------

    def _in_stock(
        self, part: Part, quantity: Decimal, source: Source, factor: Decimal, offer: Offer
    ) -> tuple[Decimal, Source, int, bool]:
        available = self._catalogue.available(part.part)
        if available >= quantity * factor:
            return quantity, source, _ONE_DAY, True
        answer = self._answer(Kind.NO_STOCK)
        if answer == DROP_LINE:
            raise _Dropped
        if answer == "wait":
            return quantity, source, offer.lead_days, False
        most = (available / factor).to_integral_value(ROUND_FLOOR)
        if answer == "deliver_available" and most * factor >= offer.minimum and most > 0:
            return most, self._told(Kind.NO_STOCK), _ONE_DAY, True
        raise self._open(
            Kind.NO_STOCK, "stock", "no_stock",
            f"has {available:f} {part.unit} in stock where {quantity * factor:f} are ordered",
            f"Wait {offer.lead_days} days, take what there is, or leave the line out.",
        )  # fmt: skip

    # --- items ----------------------------------------------------------------------

    def _answer(self, kind: Kind) -> Any:
        return self._settled.get(f"L{self._line.line}-{kind}")

    def _told(self, kind: Kind) -> Source:
        return Source("told", f"L{self._line.line}-{kind}", str(self._answer(kind)))

    def _item(self, kind: Kind, stage: str, code: str, problem: str, remedy: str = "") -> OpenItem:
        text = f"line {self._line.line}: {self._line.part} {problem}"
        return OpenItem(
            f"L{self._line.line}-{kind}", kind, stage, code, text, self._line.line, remedy=remedy
        )

    def _open(self, kind: Kind, stage: str, code: str, problem: str, remedy: str) -> _Open:
        if kind is Kind.CANNOT_QUOTE and self._answer(kind) == DROP_LINE:
            raise _Dropped
        return _Open(self._item(kind, stage, code, problem, remedy))
