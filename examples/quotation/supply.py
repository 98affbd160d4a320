"""Today's prices of a part in one currency, from all suppliers' lists."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .amounts import rounded
from .catalogue import Catalogue, Part, Rate
from .open_items import Source
from .price_lists import Break, ListPrice, PriceProblem, read_price_list

OLDEST_RATE_DAYS = 7


@dataclass(frozen=True, slots=True)
class OfferProblem:
    """Why a supplier's row does not serve a part today."""

    supplier: str
    stage: str
    code: str
    problem: str
    source: Source


@dataclass(frozen=True, slots=True)
class Offer:
    """A price that holds today. ``unit_factor``: the part's own units in one of the list's;
    ``rate``: the quotation's currency for one of the list's, to six places."""

    listed: ListPrice
    unit_factor: Decimal
    unit_source: Source
    list_rate: Rate
    quote_rate: Rate

    @property
    def rate(self) -> Decimal:
        return rounded(self.quote_rate.per_euro / self.list_rate.per_euro, 6)

    @property
    def minimum(self) -> Decimal:
        """The smallest order in the part's own units; there is no price below the first break."""
        return max(self.listed.minimum, self.listed.breaks[0].quantity) * self.unit_factor

    @property
    def lead_days(self) -> int:
        return self.listed.lead_days

    def break_at(self, base_quantity: Decimal) -> Break:
        """The volume break that this quantity reaches."""
        in_list_units = base_quantity / self.unit_factor
        return [one for one in self.listed.breaks if one.quantity <= in_list_units][-1]

    def cost_at(self, base_quantity: Decimal) -> Decimal:
        """The cost per unit of the part, in the quotation's currency."""
        price = self.break_at(base_quantity).price
        return rounded(price / (self.listed.per * self.unit_factor) * self.rate, 4)


_READ: dict[str, tuple[list[ListPrice], list[PriceProblem]]] = {}


def _read_once(
    supplier: str, agreed: Mapping[str, Any], path: Path
) -> tuple[list[ListPrice], list[PriceProblem]]:
    """Read the list, anew only if its bytes have changed."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    key = f"{path} {digest} {agreed}"
    if key not in _READ:
        _READ[key] = read_price_list(supplier, agreed, path)
    return _READ[key]


class Supply:
    """Read all price lists. ``files`` maps a supplier to the file it sent last."""

    def __init__(
        self,
        agreed: Mapping[str, Mapping[str, Any]],
        files: Mapping[str, Path],
        catalogue: Catalogue,
        currency: str,
    ) -> None:
        self._catalogue = catalogue
        self._currency = currency
        self._names = {supplier: str(form["name"]) for supplier, form in agreed.items()}
        self.prices: list[ListPrice] = []
        self.problems: list[PriceProblem] = []
        for supplier, form in agreed.items():
            prices, problems = _read_once(supplier, form, files[supplier])
            self.prices += prices
            self.problems += problems

    def name_of(self, supplier: str) -> str:
        return self._names[supplier]

    def offers(self, part: Part, today: datetime.date) -> tuple[list[Offer], list[OfferProblem]]:
        offers: list[Offer] = []
        problems = [
            self._problem(one.supplier, "prices", one.code, f"`{one.source.raw}` {one.problem}",
                          one.source)
            for one in self.problems
            if one.part in (part.part, "")
        ]  # fmt: skip
        for price in self.prices:
            if price.part == part.part:
                found = self._offer(part, price, today)
                if isinstance(found, Offer):
                    offers.append(found)
                else:
                    problems.append(found)
        return offers, problems

    def _offer(self, part: Part, price: ListPrice, today: datetime.date) -> Offer | OfferProblem:
        who = price.supplier
        if today > price.valid_to:
            return self._problem(
                who, "prices", "expired_price",
                f"the price expired on {price.valid_to}", price.sources["valid_to"],
            )  # fmt: skip
        if today < price.valid_from:
            return self._problem(
                who, "prices", "future_price",
                f"the price holds from {price.valid_from} on", price.sources["valid_from"],
            )  # fmt: skip
        unit = self._catalogue.unit_named(price.unit)
        factor = self._catalogue.factor(part, unit) if unit is not None else None
        if factor is None:
            code = "unknown_unit" if unit is None else "conflicting_units"
            text = (
                f"priced by `{price.unit}`, which is no known measure of a part sold in {part.unit}"
            )
            return self._problem(who, "prices", code, text, price.sources["unit"])
        rates = [self._catalogue.rate(currency) for currency in (price.currency, self._currency)]
        listed, quoted = rates
        if listed is None or quoted is None:
            return self._problem(
                who, "rates", "unknown_currency",
                f"no exchange rate for {price.currency} in {self._currency}",
                price.sources["currency"],
            )  # fmt: skip
        oldest = min(listed.as_of, quoted.as_of)
        if (today - oldest).days > OLDEST_RATE_DAYS:
            return self._problem(
                who, "rates", "stale_rate", f"the exchange rate is of {oldest}",
                price.sources["currency"],
            )  # fmt: skip
        return Offer(price, factor[0], factor[1], listed, quoted)

    def _problem(
        self, supplier: str, stage: str, code: str, problem: str, source: Source
    ) -> OfferProblem:
        text = f"{self.name_of(supplier)} ({source.place}): {problem}"
        return OfferProblem(supplier, stage, code, text, source)
