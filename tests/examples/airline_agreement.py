"""The compiled handbook against the plain functions of ``airline_policy``, case by case.

Every reservation, in every cabin, with and without insurance, held by a member of every tier:
cancelling it for every reason, changing it in every way of ``changes``, compensating for every
flight of it. A case that the two judge differently is a ``Difference``.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import airline_policy as policy
from airline_compiled import Circumstances, CompiledProcedure

from airline.simulator import NOW, AirlineTools
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import Handbook

CABINS = ("basic_economy", "economy", "business")
TIERS = ("regular", "silver", "gold")
INSURANCE = ("yes", "no")
PROCEDURES = (
    "cancel_reservation", "change_cabin", "change_flights", "compensate_cancelled",
    "compensate_delayed", "add_bags",
)  # fmt: skip
Variant = tuple[str, str, str, str]
"""A reservation, its cabin, its insurance, its holder's tier."""
LOCAL_NOW = NOW[:19]
"""The records have no offset: they are in the airline's time."""


@dataclass
class Tally:
    cases: Counter[str] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def count(self, kind: str, plain: object, compiled: object, case: object) -> None:
        self.cases[kind] += 1
        self.allowed[kind] += plain is not None and plain is not False
        if plain != compiled:
            self.differences.append(f"{kind} {case}: policy {plain}, handbook {compiled}")


class Agreement:
    def __init__(self, handbook: Handbook, tools: AirlineTools) -> None:
        self.tools = tools
        self.data = tools.data
        self.tally = Tally()
        self.routes = {
            number: (flight["origin"], flight["destination"])
            for number, flight in self.data["flights"].items()
        }
        programs = {name: one.program for name, one in compile_handbook(handbook).items()}
        self.compiled = {
            name: CompiledProcedure(
                programs[name], self._perform, NOW, keeps=("search_direct_flight",)
            )
            for name in PROCEDURES
        }

    def _perform(self, name: str, arguments: Mapping[str, Any]) -> tuple[bool, Any]:
        result = self.tools.perform(name, arguments)
        return result.ok, result.value

    def on_sale(self, segments: list[policy.Segment]) -> frozenset[policy.Segment]:
        """From the simulator's own status, not from a search."""
        return frozenset(
            (number, date)
            for number, date in segments
            if self.data["flights"][number]["dates"].get(date, {}).get("status") == "available"
        )

    def reservation(self, reservation_id: str) -> None:
        record = self.data["reservations"][reservation_id]
        user = self.data["users"][record["user_id"]]
        own = (record["cabin"], record["insurance"], user["membership"])
        ways = list(changes(record, self.routes, self.data["flights"]))
        try:
            for cabin, insurance, tier in itertools.product(CABINS, INSURANCE, TIERS):
                record["cabin"], record["insurance"] = cabin, insurance
                user["membership"] = tier
                self._variant(record, user, ways, (reservation_id, cabin, insurance, tier))
        finally:
            record["cabin"], record["insurance"], user["membership"] = own
            for one in self.compiled.values():
                one.forget()

    def _variant(
        self, record: dict[str, Any], user: dict[str, Any],
        ways: list[tuple[str, list[policy.Segment]]], variant: Variant,
    ) -> None:  # fmt: skip
        on_sale = self.on_sale(policy.segments(record))
        case = policy.Case(record, user["membership"], LOCAL_NOW, on_sale, routes=self.routes)
        for reason, unflown in itertools.product(policy.REASONS, (True, False)):
            self._cancel(replace(case, reason=reason, says_unflown=unflown), variant)
        for (kind, flights), payment in itertools.product(ways, user["payment_methods"]):
            self._change(case, kind, flights, payment, user, variant)
        for flight in [*policy.segments(record), ("HAT000", "2024-05-15")]:
            for complaint, asks, settled in itertools.product(
                ("cancelled", "delayed"), (True, False), (True, False)
            ):
                complains = replace(
                    case, complaint=complaint, complained_of=flight, asks_compensation=asks,
                    settled=settled,
                )  # fmt: skip
                self._compensate(complains, variant)
        cards = [
            name
            for name, method in user["payment_methods"].items()
            if method["source"] != "certificate"
        ]
        for bags in range(record["total_baggages"], record["total_baggages"] + 4):
            for card in cards[:1]:
                self._bags(case, bags, card, variant)

    def _outcome(
        self, procedure: str, case: policy.Case, variant: Variant, inputs: Mapping[str, Any],
        said: Mapping[str, str] | None = None, done: frozenset[str] = frozenset(),
    ) -> dict[str, Any] | None:  # fmt: skip
        """The values at the goal action by the handbook; none where it is refused."""
        reservation, cabin, insurance, tier = variant
        states = {
            "get_reservation_details": (reservation, cabin, insurance),
            "get_user_details": (reservation, tier),
        }
        own = {name: case.reservation[name] for name in ("user_id", "reservation_id")}
        about = Circumstances(said or {}, done, states)
        return self.compiled[procedure].outcome({**own, **inputs}, about)

    def _cancel(self, case: policy.Case, variant: Variant) -> None:
        said = {"said_unflown": "yes" if case.says_unflown else "no"}
        found = self._outcome("cancel_reservation", case, variant, {"reason": case.reason}, said)
        shown = (variant, case.reason, case.says_unflown)
        self.tally.count("cancel", policy.may_cancel(case), found is not None, shown)

    def _change(
        self, case: policy.Case, kind: str, flights: list[policy.Segment], payment: str,
        user: dict[str, Any], variant: Variant,
    ) -> None:  # fmt: skip
        cabin = case.reservation["cabin"]
        named = [{"flight_number": number, "date": date} for number, date in flights]
        legs = [{**one, **_ends(self.routes[one["flight_number"]])} for one in named]
        inputs = {"cabin": cabin, "flights": named, "payment_id": payment}
        compiled = (
            self._outcome("change_cabin", case, variant, inputs) is not None
            or self._outcome("change_flights", case, variant, {**inputs, "legs": legs}) is not None
        )
        plain = policy.may_change(case, flights, cabin) and policy.may_pay_with(
            payment, user["payment_methods"]
        )
        self.tally.count("change", plain, compiled, (variant, kind, payment))

    def _compensate(self, case: policy.Case, variant: Variant) -> None:
        number, date = case.complained_of
        said = {f"complains_of_{case.complaint}": "yes" if case.asks_compensation else "no"}
        done = frozenset({"cancelled_now"} if case.settled else ())
        inputs = {"flight_number": number, "date": date}
        found = self._outcome(f"compensate_{case.complaint}", case, variant, inputs, said, done)
        shown = (variant, case.complaint, case.complained_of, case.asks_compensation, case.settled)
        compiled = None if found is None else found["amount"]
        self.tally.count("compensate", policy.certificate(case), compiled, shown)

    def _bags(self, case: policy.Case, bags: int, card: str, variant: Variant) -> None:
        record = case.reservation
        inputs = {"total_baggages": bags, "payment_id": card}
        found = self._outcome("add_bags", case, variant, inputs)
        due = policy.bags_to_pay(case.membership, record["cabin"], len(record["passengers"]), bags)
        # What was paid for already is not paid back: bags are added, never taken away.
        due = max(due, record["nonfree_baggages"])
        compiled = None if found is None else found["nonfree_baggages"]
        self.tally.count("bags", due, compiled, (variant, bags))


def _ends(route: tuple[str, str]) -> dict[str, str]:
    return {"origin": route[0], "destination": route[1]}


def changes(
    record: dict[str, Any], routes: Mapping[str, tuple[str, str]], flights: Mapping[str, Any]
) -> Iterator[tuple[str, list[policy.Segment]]]:
    """Ways to change a reservation. New flights are on sale: the tool sells no others."""
    own = policy.segments(record)
    days = sorted({day for one in flights.values() for day in one["dates"]})

    def sold(number: str) -> str | None:
        dates = flights[number]["dates"]
        return next(
            (day for day in reversed(days) if dates.get(day, {}).get("status") == "available"), None
        )

    moved = [(number, sold(number)) for number, _ in own]
    yield "as it is", own
    yield "in another order", own[::-1]
    if all(day is not None for _, day in moved):
        later = [(number, str(day)) for number, day in moved]
        yield "all on another day", later
        yield "the last on another day", [*own[:-1], later[-1]]
        yield "one flight less", later[:-1] or later
        yield "there and back again", [*later, *later]
    elsewhere = next(
        (
            (number, str(sold(number)))
            for number, (start, end) in routes.items()
            if start == record["origin"] and end != record["destination"] and sold(number)
        ),
        None,
    )
    if elsewhere is not None:
        yield "to another place", [elsewhere]
    direct = _direct(record["origin"], record["destination"], routes, sold)
    if direct is not None:
        back = _direct(record["destination"], record["origin"], routes, sold)
        yield "direct, one way", [direct]
        if back is not None:
            yield "direct, there and back", [direct, back]


def _direct(start: str, end: str, routes: Mapping[str, tuple[str, str]], sold: Any) -> Any:
    return next(
        (
            (number, sold(number))
            for number, route in routes.items()
            if route == (start, end) and sold(number)
        ),
        None,
    )


def as_json(tally: Tally) -> dict[str, Any]:
    return {
        "cases": dict(tally.cases),
        "allowed_by_policy": dict(tally.allowed),
        "differences": len(tally.differences),
        "first_differences": tally.differences[:20],
    }


def shown(tally: Tally) -> str:
    return json.dumps(as_json(tally), indent=1)
