"""A quotation to lay out: its lines, their amounts, the freight and the rules applied."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

from .amounts import rounded
from .assessment import QuotedLine
from .calculation import LineAmounts, Totals, freight_charge, line_amounts, totals, valid_until
from .catalogue import Authority, Customer, Rate
from .freight import FreightOption
from .request import Request


@dataclass(frozen=True, slots=True)
class Rules:
    """The catalogue's rules for this customer. ``floor`` is the lowest margin allowed."""

    target_margin: Decimal
    floor: Decimal
    authority: Authority


@dataclass(frozen=True, slots=True)
class Quotation:
    """``rates`` are by currency; ``dropped`` are the lines the customer does without."""

    request: Request
    customer: Customer
    today: datetime.date
    rules: Rules
    rates: dict[str, Rate]
    lines: list[QuotedLine]
    dropped: tuple[int, ...]
    options: list[FreightOption]
    chosen: FreightOption
    supplier_names: dict[str, str]

    @property
    def number(self) -> str:
        return "Q-" + self.request.request.removeprefix("RFQ-")

    @property
    def euro_rate(self) -> Decimal:
        """The price of a euro in the quotation's currency."""
        return rounded(self.rates[self.customer.currency].per_euro / self.rates["EUR"].per_euro, 6)

    @property
    def amounts(self) -> list[LineAmounts]:
        target = self.rules.target_margin
        return [line_amounts(line, self.customer, target) for line in self.lines]

    @property
    def weight(self) -> Decimal:
        return load_weight(self.lines)

    def charge(self, option: FreightOption) -> Decimal:
        return freight_charge(option, self.weight, self.euro_rate)

    @property
    def totals(self) -> Totals:
        return totals(self.amounts, self.charge(self.chosen), self.customer)

    @property
    def leaves(self) -> datetime.date:
        return leaving_day(self.today, self.lines)

    @property
    def valid_until(self) -> datetime.date:
        return valid_until(self.today, self.lines)

    @property
    def total_in(self) -> Decimal:
        """The total in the currency of the approval limit."""
        own = self.rates[self.customer.currency].per_euro
        stated = self.rates[self.rules.authority.currency].per_euro
        return rounded(self.totals.total / own * stated, 2)


def load_weight(lines: list[QuotedLine]) -> Decimal:
    return sum((line.base_quantity * line.weight_kg for line in lines), Decimal(0))


def leaving_day(today: datetime.date, lines: list[QuotedLine]) -> datetime.date:
    """The day of dispatch: one delivery, when the last line is there."""
    return today + datetime.timedelta(days=max(line.supply_days for line in lines))
