"""What the airline's policy says about cancelling, changing and compensating, as plain functions.

Written from the text of the policy (`tau_bench/envs/airline/wiki.md`) alone, before there was a
handbook, and not adapted to it: the handbook is measured by this.

The policy speaks of flown segments and of cancelled and delayed flights. No tool of the airline
shows a flight's status; a search shows which flights are on sale, and by the policy such a flight
has not taken off. So the functions take what a desk can know: the records, the time, which
segments are on sale, and what the customer says. What the customer says counts where no tool can
tell, and never against a tool.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

REASONS = ("change of plan", "airline cancelled flight", "health", "weather", "other")
COVERED_BY_INSURANCE = ("health", "weather")

Segment = tuple[str, str]
"""Flight number and date."""


@dataclass(frozen=True)
class Case:
    """One reservation as it stands, who holds it, and what is said about it."""

    reservation: dict[str, Any]
    membership: str
    now: str
    """ISO 8601, in the time zone of the records."""
    on_sale: frozenset[Segment]
    """The reservation's segments that a search lists as available."""
    reason: str = "change of plan"
    says_unflown: bool = False
    """The customer says that no part of the trip has been flown."""
    complaint: str = ""
    """`cancelled` or `delayed`: what the customer complains of; nothing for no complaint."""
    complained_of: Segment = ("", "")
    asks_compensation: bool = False
    settled: bool = False
    """The reservation has been changed or cancelled in this conversation."""
    routes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Flight number → from, to."""


def segments(reservation: dict[str, Any]) -> list[Segment]:
    return [(one["flight_number"], one["date"]) for one in reservation["flights"]]


def booked_within_a_day(case: Case) -> bool:
    made = datetime.fromisoformat(case.reservation["created_at"])
    return datetime.fromisoformat(case.now) - made <= timedelta(hours=24)


def airline_cancelled(case: Case) -> bool:
    """That is the customer's reason, and not every segment is still being sold."""
    if case.reason != "airline cancelled flight":
        return False
    return any(one not in case.on_sale for one in segments(case.reservation))


def used(case: Case, segment: Segment) -> bool:
    """Whether a segment has to be taken for flown."""
    if segment in case.on_sale:
        return False
    today = case.now[:10]
    date = segment[1]
    if date > today:
        return False
    if date == today:
        return not case.says_unflown
    return not (case.says_unflown and airline_cancelled(case))


def may_cancel(case: Case) -> bool:
    reservation = case.reservation
    if any(used(case, one) for one in segments(reservation)):
        return False
    if booked_within_a_day(case) or airline_cancelled(case):
        return True
    if reservation["cabin"] == "business":
        return True
    return reservation["insurance"] == "yes" and case.reason in COVERED_BY_INSURANCE


def same_trip(case: Case, flights: list[Segment]) -> bool:
    """Whether flights make the same kind of trip between the same two places."""
    legs = [case.routes[number] for number, _ in flights if number in case.routes]
    if not legs or len(legs) != len(flights):
        return False
    joined = all(before[1] == after[0] for before, after in itertools.pairwise(legs))
    start, end = case.reservation["origin"], case.reservation["destination"]
    if not joined or legs[0][0] != start:
        return False
    if case.reservation["flight_type"] == "one_way":
        return legs[-1][1] == end and all(leg[1] != start for leg in legs)
    return legs[-1][1] == start and any(leg[1] == end for leg in legs)


def may_change(case: Case, flights: list[Segment], cabin: str) -> bool:
    """Whether the reservation may get these flights in this cabin.

    A new cabin alone is open to everybody. Other flights are not open to basic economy.
    """
    if sorted(flights) == sorted(segments(case.reservation)):
        return True
    if case.reservation["cabin"] == "basic_economy":
        return False
    return same_trip(case, flights)


def may_pay_with(payment_id: str, methods: dict[str, Any]) -> bool:
    """A change is paid, or refunded, with one gift card or credit card of the profile."""
    return payment_id in methods and methods[payment_id]["source"] in ("gift_card", "credit_card")


def certificate(case: Case) -> int | None:
    """The certificate that may be sent, or none."""
    reservation = case.reservation
    worthy = (
        case.membership in ("silver", "gold")
        or reservation["insurance"] == "yes"
        or reservation["cabin"] == "business"
    )
    if not worthy or not case.asks_compensation:
        return None
    if case.complained_of in case.on_sale:
        return None
    if case.complained_of not in segments(reservation):
        return None
    people = len(reservation["passengers"])
    if case.complaint == "cancelled":
        return 100 * people
    if case.complaint == "delayed" and case.settled:
        return 50 * people
    return None


FREE_BAGS = {
    "regular": {"basic_economy": 0, "economy": 1, "business": 2},
    "silver": {"basic_economy": 1, "economy": 2, "business": 3},
    "gold": {"basic_economy": 2, "economy": 3, "business": 3},
}


def bags_to_pay(membership: str, cabin: str, passengers: int, bags: int) -> int:
    """How many of the checked bags cost 50 dollars each."""
    return max(0, bags - FREE_BAGS[membership][cabin] * passengers)
