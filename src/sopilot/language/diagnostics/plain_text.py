"""Plain lines for people: tables, counts, moments. What others wrote in them hides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sopilot.language.diagnostics._visible import visible


class Heading(str):
    """A line that a terminal shows in bold."""


class Lines(str):
    """Several lines: a table, or a text that is shown as it was written."""


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table(rows: Iterable[Sequence[object]], header: Sequence[str]) -> Lines:
    """Columns padded to their widest cell; numbers to the right."""
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(header)]
    right = [all(_is_number(row[i]) for row in cells) and bool(cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return Lines("\n".join([line(list(header)), rule, *map(line, cells)]))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit()
