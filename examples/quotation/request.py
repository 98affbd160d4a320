"""The customer's request as received: a few fields, then the lines."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .amounts import UnreadableAmount, read_amount, read_date
from .open_items import Source

HEADER = ["line", "part", "quantity", "unit"]
FIELDS = ("request", "customer", "destination", "needed by", "freight")
RECOMMENDED = "recommended"


class UnreadableRequest(ValueError):
    """The file isn't a request; the message says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class RequestLine:
    line: int
    part: str
    quantity: Decimal
    unit: str
    source: Source


@dataclass(frozen=True, slots=True)
class Request:
    """``freight`` is ``recommended`` or ``customer decides``."""

    request: str
    customer: str
    destination: str | None
    needed_by: datetime.date | None
    freight: str
    lines: tuple[RequestLine, ...]
    file: str


def read_request(path: Path, told: Mapping[str, Any]) -> Request:
    """Read the request, completed by the customer's later answers (``told``)."""
    fields: dict[str, str] = {}
    lines: list[RequestLine] = []
    in_lines = False
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            place = f"{path.name} row {number}"
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if in_lines:
                lines.append(_line(cells, place))
            elif cells == HEADER:
                in_lines = True
            elif len(cells) == 2 and cells[0] in FIELDS:
                fields[cells[0]] = cells[1]
            else:
                raise UnreadableRequest(f"{place} is neither a known field nor the line header")
    if not lines:
        raise UnreadableRequest(f"{path.name} has no lines")
    if len({line.line for line in lines}) != len(lines):
        raise UnreadableRequest(f"{path.name} numbers two lines alike")
    destination = str(told.get("destination") or fields.get("destination", ""))
    needed_by = str(told.get("needed_by") or fields.get("needed by", ""))
    return Request(
        fields.get("request", ""),
        fields.get("customer", ""),
        destination or None,
        _date(needed_by),
        fields.get("freight") or RECOMMENDED,
        tuple(lines),
        path.name,
    )


def _line(cells: list[str], place: str) -> RequestLine:
    if len(cells) != len(HEADER) or not cells[0].isdigit():
        raise UnreadableRequest(f"{place} is not a line of the order")
    try:
        quantity = read_amount(cells[2], ".")
    except UnreadableAmount as problem:
        raise UnreadableRequest(f"{place}: the quantity `{cells[2]}` {problem}") from None
    if quantity <= 0:
        raise UnreadableRequest(f"{place}: the quantity is not above zero")
    source = Source("request", f"{place} quantity", cells[2])
    return RequestLine(int(cells[0]), cells[1], quantity, cells[3], source)


def _date(text: str) -> datetime.date | None:
    try:
        return read_date(text, "%Y-%m-%d")
    except UnreadableAmount:
        return None


def profile(request: Request) -> tuple[dict[str, Any], list[str]]:
    """The typed profile of the request, and the names of missing fields."""
    missing = [
        name
        for name, value in (
            ("destination", request.destination),
            ("needed_by", request.needed_by),
        )
        if value is None
    ]
    typed = {
        "request": request.request,
        "customer": request.customer,
        "destination": request.destination,
        "needed_by": request.needed_by.isoformat() if request.needed_by else None,
        "freight": request.freight,
        "lines": [
            {
                "line": line.line,
                "part": line.part,
                "quantity": float(line.quantity),
                "unit": line.unit,
            }
            for line in request.lines
        ],
    }
    return typed, missing
