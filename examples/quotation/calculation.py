"""The numbers of a quotation in decimal arithmetic, which the workbook must reproduce."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

from .amounts import rounded
from .assessment import QuotedLine
from .catalogue import Customer
from .freight import FreightOption

VALID_DAYS = 30


@dataclass(frozen=True, slots=True)
class LineAmounts:
    """Amounts in the quotation's currency. ``price`` is per unit of the customer."""

    cost: Decimal
    price: Decimal
    total: Decimal
    total_cost: Decimal
    weight: Decimal

    @property
    def margin(self) -> Decimal:
        return (self.total - self.total_cost) / self.total


@dataclass(frozen=True, slots=True)
class Totals:
    goods: Decimal
    cost: Decimal
    freight: Decimal
    tax: Decimal
    weight: Decimal

    @property
    def total(self) -> Decimal:
        return self.goods + self.freight + self.tax

    @property
    def margin(self) -> Decimal:
        return (self.goods - self.cost) / self.goods


def line_amounts(line: QuotedLine, customer: Customer, target_margin: Decimal) -> LineAmounts:
    cost = line.offer.cost_at(line.base_quantity)
    full = cost * line.factor / (1 - target_margin)
    price = rounded(full * (1 - customer.discount), 2)
    return LineAmounts(
        cost,
        price,
        rounded(price * line.quantity, 2),
        rounded(cost * line.base_quantity, 2),
        line.base_quantity * line.weight_kg,
    )


def freight_charge(option: FreightOption, weight: Decimal, euro_rate: Decimal) -> Decimal:
    """``euro_rate``: how much of the quotation's currency one euro buys."""
    net = option.base + option.per_kg * weight
    return rounded(net * (1 + option.fuel) * euro_rate, 2)


def totals(amounts: list[LineAmounts], freight: Decimal, customer: Customer) -> Totals:
    goods = sum((one.total for one in amounts), Decimal(0))
    return Totals(
        goods,
        sum((one.total_cost for one in amounts), Decimal(0)),
        freight,
        rounded((goods + freight) * customer.tax_rate, 2),
        sum((one.weight for one in amounts), Decimal(0)),
    )


def valid_until(today: datetime.date, lines: list[QuotedLine]) -> datetime.date:
    """The last day of the quotation: no longer than the suppliers' prices hold."""
    own = today + datetime.timedelta(days=VALID_DAYS)
    return min([own, *(line.offer.listed.valid_to for line in lines)])
