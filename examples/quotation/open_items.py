"""Open items: problems that keep a request from being quoted, and their remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The question that settles the item; the program has a branch for each."""

    UNCLEAR_UNIT = "unclear_unit"
    DISCONTINUED = "discontinued"
    NO_STOCK = "no_stock"
    MISSING_WEIGHT = "missing_weight"
    BELOW_MINIMUM = "below_minimum"
    CANNOT_QUOTE = "cannot_quote"
    NO_FREIGHT = "no_freight"


NONE_LEFT = "none_left"


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a number: ``kind`` names the system, ``place`` the spot in it."""

    kind: str
    place: str
    raw: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "place": self.place, "raw": self.raw}


@dataclass(frozen=True, slots=True)
class OpenItem:
    """``code`` says what is wrong, ``kind`` what could be done about it. An item that is not
    ``blocking`` is on record while another source serves the line."""

    id: str
    kind: Kind
    stage: str
    code: str
    problem: str
    line: int | None = None
    source: Source | None = None
    blocking: bool = True
    remedy: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": str(self.kind),
            "stage": self.stage,
            "code": self.code,
            "problem": self.problem,
            "line": self.line,
            "source": self.source.as_json() if self.source else None,
            "blocking": self.blocking,
            "remedy": self.remedy,
        }
