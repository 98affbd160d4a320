"""Tools over the request, the catalogue and the price lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sopilot.protocols import ToolResult

from .desk import Desk
from .open_items import OpenItem
from .request import profile

REQUEST = {"request": "The request's number, such as RFQ-2041."}
CUSTOMER = {"customer": "The customer's number, such as C-102."}


def case_tools(
    desk: Desk,
) -> dict[str, tuple[str, Mapping[str, str], Callable[..., ToolResult]]]:
    work = _CaseWork(desk)
    return {
        "read_customer": ("Reads a customer's record.", CUSTOMER, work.read_customer),
        "read_credit": ("Reads a customer's credit line.", CUSTOMER, work.read_credit),
        "read_request": ("Reads the request as it came in.", REQUEST, work.read_request),
        "profile_request": (
            "Makes the typed profile of a request and lists what it lacks.",
            REQUEST,
            work.profile_request,
        ),
        "complete_profile": (
            "Writes down what the customer told about the delivery.",
            {
                **REQUEST,
                "destination": "Country and postcode, such as NL-3011.",
                "needed_by": "The day, such as 2026-12-04.",
            },
            work.complete_profile,
        ),
        "look_up_parts": (
            "Looks up parts, units and weights in the catalogue.",
            REQUEST,
            work.look_up_parts,
        ),
        "check_stock": ("Compares the quantities with the stock.", REQUEST, work.check_stock),
        "read_supplier_prices": (
            "Reads the suppliers' price lists for the parts of the request.",
            REQUEST,
            work.read_supplier_prices,
        ),
        "read_exchange_rates": (
            "Reads the exchange rates that the prices need.",
            REQUEST,
            work.read_exchange_rates,
        ),
        "next_open_item": (
            "Names the next open item that nobody was asked about.",
            REQUEST,
            work.next_open_item,
        ),
        "settle_item": (
            "Writes down the customer's answer about the open item at hand.",
            {
                **REQUEST,
                "kind": "The kind of the item that is answered.",
                "answer": "What the customer said.",
            },
            work.settle_item,
        ),
        "list_open_items": ("Lists everything that is open.", REQUEST, work.list_open_items),
    }


class _CaseWork:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # --- intake ---------------------------------------------------------------------

    def read_customer(self, customer: str) -> ToolResult:
        found = self._desk.catalogue.customer(customer)
        if found is None:
            return _answer(customer=customer, standing="unknown")
        return _answer(
            customer=customer,
            name=found.name,
            currency=found.currency,
            tier=found.tier,
            standing=found.standing,
            owns_request=self._desk.request().customer == customer,
        )

    def read_credit(self, customer: str) -> ToolResult:
        credit = self._desk.catalogue.credit(customer)
        if credit is None:
            return _answer(customer=customer, free=0.0)
        limit, receivables = credit
        return _answer(
            customer=customer,
            limit=float(limit),
            receivables=float(receivables),
            free=float(limit - receivables),
        )

    def read_request(self) -> ToolResult:
        request = self._desk.request()
        return _answer(
            number=request.request,
            customer=request.customer,
            file=request.file,
            lines=len(request.lines),
        )

    def profile_request(self) -> ToolResult:
        typed, missing = profile(self._desk.request())
        return _answer(profile=typed, missing=missing)

    def complete_profile(self, destination: str, needed_by: str) -> ToolResult:
        self._desk.case.decide("told", {"destination": destination, "needed_by": needed_by})
        if "-" not in destination:
            # Only a country with a postcode is a place that freight can go to.
            self._desk.case.decide("told", {"needed_by": needed_by})
        _, missing = profile(self._desk.request())
        return _answer(missing=missing)

    # --- parts, stock, prices -------------------------------------------------------

    def look_up_parts(self) -> ToolResult:
        found = self._desk.assessment()
        lines = [
            {"line": one.line, "part": one.part.part, "own_units": float(one.base_quantity)}
            for one in found.lines
        ]
        return _answer(lines=lines, **_open(found.open_in("parts")))

    def check_stock(self) -> ToolResult:
        found = self._desk.assessment()
        lines = [
            {"line": one.line, "from_stock": one.from_stock, "supply_days": one.supply_days}
            for one in found.lines
        ]
        return _answer(lines=lines, **_open(found.open_in("stock")))

    def read_supplier_prices(self) -> ToolResult:
        found = self._desk.assessment()
        lines = []
        for one in found.lines:
            listed = one.offer.break_at(one.base_quantity)
            lines.append(
                {
                    "line": one.line,
                    "supplier": one.offer.listed.supplier,
                    "currency": one.offer.listed.currency,
                    "price": float(listed.price),
                    "per": float(one.offer.listed.per),
                    "from_quantity": float(listed.quantity),
                    "valid_to": one.offer.listed.valid_to.isoformat(),
                    "place": listed.source.place,
                }
            )
        notes = [item.problem for item in found.items if not item.blocking]
        return _answer(lines=lines, notes=notes, **_open(found.open_in("prices")))

    def read_exchange_rates(self) -> ToolResult:
        found = self._desk.assessment()
        currencies = {one.offer.listed.currency for one in found.lines}
        rates = {}
        for currency in sorted(currencies | {self._desk.customer().currency}):
            rate = self._desk.catalogue.rate(currency)
            if rate is not None:
                rates[currency] = {
                    "per_euro": float(rate.per_euro),
                    "as_of": rate.as_of.isoformat(),
                }
        return _answer(rates=rates, **_open(found.open_in("rates")))

    # --- open items -----------------------------------------------------------------

    def next_open_item(self) -> ToolResult:
        item = self._desk.next_item()
        return _answer(
            next_item=self._desk.next_kind(),
            problem=item.problem if item else "",
            remedy=item.remedy if item else "",
        )

    def settle_item(self, kind: str, answer: str) -> ToolResult:
        item = self._desk.next_item()
        if item is None or item.kind != kind:
            waiting = "nothing" if item is None else f"an item of the kind {item.kind}"
            return ToolResult(False, {"error": f"what waits for an answer is {waiting}"})
        self._desk.case.enter("settled", item.id, answer)
        still_open = item.id in [one.id for one in self._desk.assessment().blocking]
        following = self.next_open_item().value
        told = following if isinstance(following, Mapping) else {}
        return _answer(settled=item.id, answer=answer, still_open=still_open, **told)

    def list_open_items(self) -> ToolResult:
        items = self._desk.open_items()
        blocking = [item.as_json() for item in items if item.blocking]
        notes = [item.as_json() for item in items if not item.blocking]
        return _answer(open=len(blocking), unresolved_items=blocking, notes=notes)


def _answer(**value: Any) -> ToolResult:
    return ToolResult(True, value)


def _open(items: list[OpenItem]) -> dict[str, Any]:
    return {"open": len(items), "problems": [item.problem for item in items]}
