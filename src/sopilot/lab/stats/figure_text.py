"""Named figures for people, as a small table, and for scripts, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sopilot.lab.stats._undefined import Undefined

FigureObject = Mapping[str, Any]


def figure_lines(report: FigureObject) -> Iterator[str]:
    lists = {name: value for name, value in report.items() if isinstance(value, list)}
    lines = {name: value for name, value in report.items() if name not in lists}
    width = max(map(len, ("", *lines)))
    for name, value in lines.items():
        yield f"{name:<{width}}  {_cell(value)}"
    for rows in lists.values():
        yield from _table(rows)


def _table(rows: Sequence[FigureObject]) -> Iterator[str]:
    cells = [[str(name) for name in rows[0]]] + [
        [_cell(value) for value in row.values()] for row in rows
    ]
    widths = [max(len(row[place]) for row in cells) for place in range(len(rows[0]))]
    for row in cells:
        yield "  ".join(row[place].ljust(width) for place, width in enumerate(widths)).rstrip()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{count} {reason}" for reason, count in value.items()) or "none"
    return "–" if value in (None, "") else str(value)


def figure_json(report: FigureObject) -> dict[str, Any]:
    """An undefined figure is null and its reason stands under `undefined`, in the object that
    lacks it."""
    plain: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, value in report.items():
        if isinstance(value, Undefined):
            plain[name] = None
            missing[name] = value.reason
        elif isinstance(value, list):
            plain[name] = [figure_json(row) for row in value]
        else:
            plain[name] = value
    return plain | {"undefined": missing} if missing else plain
