"""Customers, parts, stock, margins and exchange rates, in SQLite."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from .open_items import Source


@dataclass(frozen=True, slots=True)
class Customer:
    customer: str
    name: str
    address: str
    country: str
    currency: str
    tier: str
    discount: Decimal
    tax_rate: Decimal
    payment: str
    standing: str


@dataclass(frozen=True, slots=True)
class Part:
    part: str
    description: str
    unit: str
    weight_kg: Decimal | None
    hazardous: bool
    status: str
    successor: str | None


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of a euro in ``currency``."""

    currency: str
    per_euro: Decimal
    as_of: datetime.date


@dataclass(frozen=True, slots=True)
class Authority:
    role: str
    largest_total: Decimal
    currency: str
    least_margin: Decimal


def build_catalogue(script: Path, database: Path) -> None:
    """Make a database file from its SQL text; keep an existing file."""
    if database.exists():
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    new = database.with_suffix(".new")
    new.unlink(missing_ok=True)
    connection = sqlite3.connect(new)
    try:
        connection.executescript(script.read_text(encoding="utf-8"))
    finally:
        connection.close()
    new.replace(database)


class Catalogue:
    """Read-only queries of the database; ``None`` for a row that it lacks."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def customer(self, customer: str) -> Customer | None:
        row = self._row("SELECT * FROM customers WHERE customer = ?", customer)
        if row is None:
            return None
        discount, tax = Decimal(row["discount"]), Decimal(row["tax_rate"])
        fields = {**dict(row), "discount": discount, "tax_rate": tax}
        return Customer(**fields)

    def credit(self, customer: str) -> tuple[Decimal, Decimal] | None:
        """The credit limit, and the receivables."""
        row = self._row("SELECT * FROM credit WHERE customer = ?", customer)
        if row is None:
            return None
        return Decimal(row["credit_limit"]), Decimal(row["receivables"])

    def target_margin(self, tier: str) -> Decimal | None:
        row = self._row("SELECT target FROM margins WHERE tier = ?", tier)
        return None if row is None else Decimal(row["target"])

    def authority(self) -> Authority | None:
        row = self._row("SELECT * FROM authority WHERE role = ?", "quotation desk")
        if row is None:
            return None
        largest, least = Decimal(row["largest_total"]), Decimal(row["least_margin"])
        return Authority(row["role"], largest, row["currency"], least)

    def part(self, part: str) -> Part | None:
        row = self._row("SELECT * FROM parts WHERE part = ?", part)
        if row is None:
            return None
        weight = None if row["weight_kg"] is None else Decimal(row["weight_kg"])
        fields = {**dict(row), "weight_kg": weight, "hazardous": bool(row["hazardous"])}
        return Part(**fields)

    def unit_named(self, name: str) -> str | None:
        row = self._row("SELECT unit FROM unit_names WHERE name = ?", name.strip().lower())
        return None if row is None else str(row["unit"])

    def factor(self, part: Part, unit: str) -> tuple[Decimal, Source] | None:
        """The number of the part's own units in a ``unit``."""
        if unit == part.unit:
            return Decimal(1), Source("catalogue", f"parts/{part.part}/unit", part.unit)
        row = self._row(
            "SELECT factor FROM part_units WHERE part = ? AND unit = ?", part.part, unit
        )
        if row is None:
            return None
        place = f"part_units/{part.part}/{unit}/factor"
        return Decimal(row["factor"]), Source("catalogue", place, row["factor"])

    def available(self, part: str) -> Decimal:
        """The quantity on hand that isn't promised to others."""
        row = self._row("SELECT on_hand, reserved FROM stock WHERE part = ?", part)
        return Decimal(0) if row is None else Decimal(row["on_hand"]) - Decimal(row["reserved"])

    def rate(self, currency: str) -> Rate | None:
        row = self._row("SELECT * FROM exchange_rates WHERE currency = ?", currency)
        if row is None:
            return None
        as_of = datetime.date.fromisoformat(row["as_of"])
        return Rate(row["currency"], Decimal(row["per_euro"]), as_of)

    def _row(self, query: str, *values: str) -> sqlite3.Row | None:
        with self._open() as connection:
            row: sqlite3.Row | None = connection.execute(query, values).fetchone()
            return row

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            connection.close()
