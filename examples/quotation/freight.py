"""The carrier's tariff, by zone, service and weight."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from .open_items import Source


@dataclass(frozen=True, slots=True)
class FreightOption:
    """A service for this weight, with its prices in euros and the zone's fuel surcharge."""

    service: str
    base: Decimal
    per_kg: Decimal
    transit_days: int
    fuel: Decimal
    arrives: datetime.date
    sources: Mapping[str, Source]


class Tariff:
    def __init__(self, tariff: Path, zones: Path) -> None:
        self._tariff = tariff
        self._zones = zones

    def options(
        self, destination: str, weight: Decimal, *, hazardous: bool, leaves: datetime.date
    ) -> list[FreightOption]:
        """List the services that go there with this load, in the order of the tariff.

        ``destination`` starts with the country, as in ``NL-3011``.
        """
        zone = self._zone(destination)
        if zone is None:
            return []
        number, fuel, fuel_source = zone
        best: dict[str, tuple[Decimal, FreightOption]] = {}
        for row_number, row in self._rows(self._tariff):
            start = Decimal(row["from_kg"])
            if row["zone"] != number or weight < start:
                continue
            if hazardous and row["hazardous"] != "yes":
                continue
            days = int(row["transit_days"])
            place = f"{self._tariff.name} row {row_number}"
            sources = {
                name: Source("tariff", f"{place} {name}", row[name])
                for name in ("base_eur", "per_kg_eur", "transit_days")
            }
            option = FreightOption(
                row["service"],
                Decimal(row["base_eur"]),
                Decimal(row["per_kg_eur"]),
                days,
                fuel,
                leaves + datetime.timedelta(days=days),
                {**sources, "fuel": fuel_source},
            )
            known = best.get(option.service)
            if known is None or start > known[0]:
                best[option.service] = start, option
        return [option for _, option in best.values()]

    def _zone(self, destination: str) -> tuple[str, Decimal, Source] | None:
        country = destination.split("-", 1)[0].strip().upper()
        for row_number, row in self._rows(self._zones):
            if row["destination"] == country:
                place = f"{self._zones.name} row {row_number} fuel_surcharge"
                fuel = row["fuel_surcharge"]
                return row["zone"], Decimal(fuel), Source("tariff", place, fuel)
        return None

    def _rows(self, path: Path) -> Sequence[tuple[int, dict[str, str]]]:
        with path.open(encoding="utf-8", newline="") as file:
            return list(enumerate(csv.DictReader(file), start=2))
