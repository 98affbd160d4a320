"""A table of a report: cells are text, an empty figure says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sopilot.lab.stats import Undefined


@dataclass(slots=True)
class Table:
    """``name`` is the CSV's file name; ``method`` says how figures came about; ``missing``
    why cells are empty."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    method: str = ""
    missing: list[str] = field(default_factory=list)

    def lacks(self, why: str) -> str:
        """An empty cell, its reason kept once."""
        if why not in self.missing:
            self.missing.append(why)
        return f"– [{self.missing.index(why) + 1}]"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def points(share: float) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * share:+.1f}"


def p_text(p: float) -> str:
    """As the study prints it, small ones with their size."""
    if p < 0.0001:
        return f"{p:.1e}"
    return f"{p:.4f}".lstrip("0") if p < 1 else "1.000"


def figure(value: float | Undefined | None, digits: int = 2) -> str:
    if value is None:
        return "–"
    return f"– ({value.reason})" if isinstance(value, Undefined) else f"{value:.{digits}f}"
