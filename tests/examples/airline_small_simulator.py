"""A made-up airline of the same shape as τ-bench's, for tests without a checkout: a few flights
and reservations, and tools that answer in the same way."""

from __future__ import annotations

import json
from typing import Any

from airline.benchmark import AirlineBenchmark
from airline.checkout import GoldTask
from airline.simulator import AirlineTools

SEATS = {"basic_economy": 9, "economy": 9, "business": 9}
PRICES = {"basic_economy": 60, "economy": 100, "business": 300}
SOLD = {"status": "available", "available_seats": SEATS, "prices": PRICES}
DAYS = [f"2024-05-{day:02}" for day in range(10, 21)]


def _flight(number: str, origin: str, destination: str, **other: str) -> dict[str, Any]:
    """On sale from tomorrow on, landed before today; ``other`` are statuses by day."""
    dates: dict[str, Any] = {}
    for day in DAYS:
        status = other.get(f"d{day[-2:]}", "available" if day > "2024-05-15" else "landed")
        dates[day] = SOLD if status == "available" else {"status": status}
    return {"flight_number": number, "origin": origin, "destination": destination, "dates": dates}


def _reservation(
    name: str, flights: list[tuple[str, str]], *, kind: str = "one_way", made: str = "2024-05-01",
    people: int = 1,
) -> dict[str, Any]:  # fmt: skip
    legs = [
        {
            "flight_number": number,
            "date": date,
            "price": 100,
            "origin": FLIGHTS[number]["origin"],
            "destination": FLIGHTS[number]["destination"],
        }
        for number, date in flights
    ]
    return {
        "reservation_id": name,
        "user_id": "ann_1",
        "origin": legs[0]["origin"],
        "destination": legs[-1]["destination"] if kind == "one_way" else legs[0]["destination"],
        "flight_type": kind,
        "cabin": "economy",
        "flights": legs,
        "passengers": [{"first_name": "A", "last_name": "B", "dob": "1990-01-01"}] * people,
        "payment_history": [],
        "created_at": made if "T" in made else f"{made}T12:00:00",
        "total_baggages": 1,
        "nonfree_baggages": 0,
        "insurance": "no",
    }


FLIGHTS = {
    one["flight_number"]: one
    for one in (
        _flight("F1", "AAA", "BBB", d14="cancelled", d15="delayed", d18="cancelled"),
        _flight("F2", "BBB", "AAA", d15="on time"),
        _flight("F3", "AAA", "CCC", d15="flying"),
        _flight("F4", "CCC", "BBB"),
        _flight("F5", "BBB", "CCC", d15="available"),
    )
}
RESERVATIONS = {
    one["reservation_id"]: one
    for one in (
        _reservation("AHEAD1", [("F1", "2024-05-17")], people=2),
        _reservation("ROUND1", [("F1", "2024-05-17"), ("F2", "2024-05-19")], kind="round_trip"),
        _reservation("STOPS1", [("F3", "2024-05-16"), ("F4", "2024-05-16")]),
        _reservation("FRESH1", [("F3", "2024-05-18")], made="2024-05-14T15:00:00"),
        _reservation("STALE1", [("F3", "2024-05-18")], made="2024-05-14T14:59:59"),
        _reservation("FLOWN1", [("F2", "2024-05-12")]),
        _reservation("HALF01", [("F1", "2024-05-13"), ("F2", "2024-05-17")], kind="round_trip"),
        _reservation("GONE01", [("F1", "2024-05-14")], people=3),
        _reservation("TODAY1", [("F1", "2024-05-15")], people=2),
        _reservation("TODAY2", [("F5", "2024-05-15")]),
        _reservation("LATER1", [("F1", "2024-05-18"), ("F5", "2024-05-19")], people=2),
    )
}
USERS = {
    "ann_1": {
        "name": {"first_name": "Ann", "last_name": "A"},
        "membership": "regular",
        "reservations": list(RESERVATIONS),
        "payment_methods": {
            "credit_card_1": {"source": "credit_card", "id": "credit_card_1"},
            "gift_card_1": {"source": "gift_card", "amount": 500, "id": "gift_card_1"},
            "certificate_1": {"source": "certificate", "amount": 100, "id": "certificate_1"},
            "certificate_2": {"source": "certificate", "amount": 100, "id": "certificate_2"},
        },
    }
}
DATA = json.dumps({"flights": FLIGHTS, "reservations": RESERVATIONS, "users": USERS})


class _Tool:
    def __init__(self, name: str, inputs: tuple[str, ...], run: Any) -> None:
        self._name, self._inputs, self.invoke = name, inputs, run

    def get_info(self) -> dict[str, Any]:
        properties: dict[str, Any] = {name: {} for name in self._inputs}
        parameters = {"type": "object", "properties": properties, "required": list(self._inputs)}
        about = {"name": self._name, "description": "", "parameters": parameters}
        return {"type": "function", "function": about}


def _user(data: Any, user_id: str) -> str:
    return (
        json.dumps(data["users"][user_id]) if user_id in data["users"] else "Error: user not found"
    )


def _details(data: Any, reservation_id: str) -> str:
    found = data["reservations"].get(reservation_id)
    return json.dumps(found) if found else "Error: user not found"


def _search(data: Any, origin: str, destination: str, date: str) -> str:
    return json.dumps(
        [
            {**{key: value for key, value in one.items() if key != "dates"}, **one["dates"][date]}
            for one in data["flights"].values()
            if (one["origin"], one["destination"]) == (origin, destination)
            and one["dates"].get(date, {}).get("status") == "available"
        ]
    )


def _write(data: Any, reservation_id: str = "", **changed: Any) -> str:
    record = data["reservations"][reservation_id]
    record.update({key: value for key, value in changed.items() if key in record})
    return json.dumps(record)


def _cancel(data: Any, reservation_id: str) -> str:
    data["reservations"][reservation_id]["status"] = "cancelled"
    return json.dumps(data["reservations"][reservation_id])


def _certificate(data: Any, user_id: str, amount: int) -> str:
    data["users"][user_id]["payment_methods"]["certificate_9"] = {"amount": amount}
    return f"Certificate certificate_9 added to user {user_id} with amount {amount}."


def _book(data: Any, **given: Any) -> str:
    data["reservations"]["HATHAT"] = {**given, "reservation_id": "HATHAT"}
    return json.dumps(data["reservations"]["HATHAT"])


BOOKED = (
    "user_id", "origin", "destination", "flight_type", "cabin", "flights", "passengers",
    "payment_methods", "total_baggages", "nonfree_baggages", "insurance",
)  # fmt: skip
TOOLS = {
    name: _Tool(name, inputs, run)
    for name, inputs, run in (
        ("get_user_details", ("user_id",), _user),
        ("get_reservation_details", ("reservation_id",), _details),
        ("search_direct_flight", ("origin", "destination", "date"), _search),
        ("cancel_reservation", ("reservation_id",), _cancel),
        ("book_reservation", BOOKED, _book),
        ("send_certificate", ("user_id", "amount"), _certificate),
        (
            "update_reservation_flights",
            ("reservation_id", "cabin", "flights", "payment_id"),
            _write,
        ),
        (
            "update_reservation_baggages",
            ("reservation_id", "total_baggages", "nonfree_baggages", "payment_id"),
            _write,
        ),
        ("update_reservation_passengers", ("reservation_id", "passengers"), _write),
        ("transfer_to_human_agents", ("summary",), lambda data, summary: "Transfer successful"),
    )
}


def small_simulator() -> AirlineTools:
    return AirlineTools(TOOLS, DATA)


def small_benchmark() -> AirlineBenchmark:
    cancelled = ("cancel_reservation", {"reservation_id": "FRESH1"})
    gold = GoldTask("cancel", "ann_1", "Cancel FRESH1.", (cancelled,), ("24",))
    return AirlineBenchmark(TOOLS, DATA, [gold])
