"""Tools over the freight tariff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sopilot.protocols import ToolResult

from .case_tools import REQUEST
from .desk import Desk
from .freight import FreightOption
from .quotation import load_weight

RECOMMENDED = "recommended"


def freight_tools(
    desk: Desk,
) -> dict[str, tuple[str, Mapping[str, str], Callable[..., ToolResult]]]:
    work = _FreightWork(desk)
    return {
        "freight_options": (
            "Lists the services that go to the destination with this load.",
            REQUEST,
            work.freight_options,
        ),
        "choose_freight": (
            "Books a service into the quotation.",
            {**REQUEST, "service": "The service's name, or `recommended`."},
            work.choose_freight,
        ),
        "agree_date": (
            "Writes down a later day of arrival that the customer agrees to.",
            {**REQUEST, "later_date": "The day, such as 2027-01-15."},
            work.agree_date,
        ),
    }


class _FreightWork:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def freight_options(self) -> ToolResult:
        desk = self._desk
        options = desk.freight_options()
        choice = desk.freight_choice(options)
        request = desk.request()
        why = ""
        if choice == "none":
            why = f"no service takes this load to {request.destination}"
            if options:
                why = f"nothing arrives in {request.destination} by {request.needed_by}"
        desk.case.decide("freight_problem", why)
        recommended = desk.recommended(options).service if options else None
        return ToolResult(
            True,
            {
                "freight_choice": choice,
                "recommended_service": recommended,
                "weight_kg": float(load_weight(list(desk.assessment().lines))),
                "options": [self._shown(option) for option in options],
            },
        )

    def choose_freight(self, service: str) -> ToolResult:
        desk = self._desk
        options = desk.freight_options()
        named = {option.service: option for option in options}
        if service == RECOMMENDED and options:
            service = desk.recommended(options).service
        chosen = named.get(service)
        if chosen is None:
            known = ", ".join(named) or "nothing"
            return ToolResult(False, {"error": f"`{service}` is not offered; there is {known}"})
        desk.case.decide("service", service)
        arrival = "in_time" if desk.in_time(chosen) else "late"
        return ToolResult(True, {"arrival": arrival, **self._shown(chosen)})

    def agree_date(self, later_date: str) -> ToolResult:
        day = self._desk.agree_date(later_date)
        if day is None:
            return ToolResult(False, {"error": f"`{later_date}` is not a day from today on"})
        return ToolResult(True, {"agreed": day.isoformat()})

    def _shown(self, option: FreightOption) -> dict[str, Any]:
        return {
            "service_name": option.service,
            "base_eur": float(option.base),
            "per_kg_eur": float(option.per_kg),
            "fuel": float(option.fuel),
            "arrives": option.arrives.isoformat(),
            "in_time": self._desk.in_time(option),
        }
