"""The state of one case, derived from its inputs and its decisions."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from .amounts import UnreadableAmount, read_date
from .assessment import Assessment, assess
from .case_file import CaseFile
from .catalogue import Catalogue, Customer, Rate
from .freight import FreightOption, Tariff
from .open_items import NONE_LEFT, Kind, OpenItem
from .quotation import Quotation, Rules, leaving_day, load_weight
from .request import RECOMMENDED, Request, read_request
from .supply import Supply


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of one case, the day, and the faults that its task simulates."""

    request: Path
    prices: Mapping[str, Path]
    suppliers: Path
    tariff: Path
    zones: Path
    today: datetime.date
    spoil: str = ""


class Desk:
    """Computes everything about one case. Stores nothing but the case file."""

    def __init__(self, inputs: Inputs, catalogue: Catalogue, case: CaseFile) -> None:
        self.inputs = inputs
        self.catalogue = catalogue
        self.case = case
        self._tariff = Tariff(inputs.tariff, inputs.zones)

    def request(self) -> Request:
        request = read_request(self.inputs.request, self.case.entries("told"))
        agreed = self.case.read().get("agreed_date")
        if agreed:
            request = replace(request, needed_by=datetime.date.fromisoformat(agreed))
        return request

    def customer(self) -> Customer:
        customer = self.catalogue.customer(self.request().customer)
        if customer is None:
            raise LookupError(f"customer {self.request().customer} is not in the catalogue")
        return customer

    def supply(self) -> Supply:
        agreed = yaml.safe_load(self.inputs.suppliers.read_text(encoding="utf-8"))
        currency = self.customer().currency
        return Supply(agreed, self.inputs.prices, self.catalogue, currency)

    def assessment(self) -> Assessment:
        settled = self.case.entries("settled")
        return assess(self.request(), self.catalogue, self.supply(), settled, self.inputs.today)

    # --- open items -----------------------------------------------------------------

    def open_items(self) -> list[OpenItem]:
        """Every problem that keeps the case from being quoted, freight included."""
        items = list(self.assessment().items)
        problem = self.case.read().get("freight_problem")
        if problem:
            items.append(
                OpenItem(
                    "freight",
                    Kind.NO_FREIGHT,
                    "freight",
                    "no_freight",
                    problem,
                    remedy="Name another destination, or agree a later day.",
                )
            )
        return items

    def next_item(self) -> OpenItem | None:
        """The first blocking item that wasn't put to the customer yet."""
        settled = self.case.entries("settled")
        for item in self.assessment().blocking:
            if item.id not in settled and item.id.startswith("L"):
                return item
        return None

    def next_kind(self) -> str:
        item = self.next_item()
        return NONE_LEFT if item is None else str(item.kind)

    # --- freight --------------------------------------------------------------------

    def freight_options(self) -> list[FreightOption]:
        lines = list(self.assessment().lines)
        request = self.request()
        if not lines or request.destination is None:
            return []
        return self._tariff.options(
            request.destination,
            load_weight(lines),
            hazardous=any(line.part.hazardous for line in lines),
            leaves=leaving_day(self.inputs.today, lines),
        )

    def in_time(self, option: FreightOption) -> bool:
        needed_by = self.request().needed_by
        return needed_by is not None and option.arrives <= needed_by

    def recommended(self, options: list[FreightOption]) -> FreightOption:
        """The cheapest service that arrives in time; if none does, the fastest."""
        weight = load_weight(list(self.assessment().lines))
        timely = [option for option in options if self.in_time(option)]
        if timely:
            return min(timely, key=lambda one: (one.base + one.per_kg * weight) * (1 + one.fuel))
        return min(options, key=lambda one: one.arrives)

    def freight_choice(self, options: list[FreightOption]) -> str:
        agreed = bool(self.case.read().get("agreed_date"))
        reachable = [option for option in options if self.in_time(option)]
        if not options or (agreed and not reachable):
            return "none"
        return "recommended" if self.request().freight == RECOMMENDED else "customer_choice"

    def agree_date(self, text: str) -> datetime.date | None:
        try:
            day = read_date(text, "%Y-%m-%d")
        except UnreadableAmount:
            return None
        if day < self.inputs.today:
            return None
        self.case.decide("agreed_date", day.isoformat())
        return day

    # --- the quotation --------------------------------------------------------------

    def quotation(self) -> Quotation:
        """Raise ``LookupError`` while an item is still open."""
        assessment, customer = self.assessment(), self.customer()
        options = self.freight_options()
        service = self.case.read().get("service")
        chosen = next((option for option in options if option.service == service), None)
        if assessment.blocking or chosen is None:
            raise LookupError("the case has open items or no freight yet")
        supply = self.supply()
        used = {line.offer.listed.currency for line in assessment.lines}
        rates = {currency: self._rate(currency) for currency in used | {customer.currency, "EUR"}}
        return Quotation(
            self.request(), customer, self.inputs.today, self.rules(customer), rates,
            list(assessment.lines), assessment.dropped, options, chosen,
            {price.supplier: supply.name_of(price.supplier) for price in supply.prices},
        )  # fmt: skip

    def rules(self, customer: Customer) -> Rules:
        target = self.catalogue.target_margin(customer.tier)
        floor = self.catalogue.target_margin("floor")
        authority = self.catalogue.authority()
        if target is None or floor is None or authority is None:
            raise LookupError("the catalogue lacks a margin rule")
        return Rules(target, floor, authority)

    def _rate(self, currency: str) -> Rate:
        rate = self.catalogue.rate(currency)
        if rate is None:
            raise LookupError(f"no exchange rate for {currency}")
        return rate


def shown(amount: Decimal) -> float:
    """The number as a tool's result shows it."""
    return float(amount)


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
    new.replace(path)
