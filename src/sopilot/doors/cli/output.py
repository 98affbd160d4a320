"""How commands speak: one JSON object for scripts, tables and plain lines for people.

Every word goes out through here. What others wrote may stand in it: nothing of that moves
a cursor, changes a colour or hides.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from sopilot.language.diagnostics import LINES, visible

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of text."
)


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """``style`` is click's, for all of the text."""
    shown = visible(text, LINES)
    click.echo(click.style(shown, **style) if style else shown, err=err, nl=nl)


def marked(mark: str, text: str, **style: Any) -> None:
    """A line with a mark in front, in a style of its own; further lines stand below the text."""
    first, *rest = visible(text, LINES).split("\n")
    click.echo(f"{click.style(mark, **style)} {first}")
    for line in rest:
        click.echo(f"{' ' * len(mark)} {line}")


def hand_out(text: str) -> None:
    """A file's text, byte for byte; to a terminal as everything else."""
    click.echo(visible(text, LINES) if sys.stdout.isatty() else text, nl=False)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def heading(text: str) -> None:
    say(text, bold=True)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Still the same JSON: its strings have an escape for whatever is not shown."""
    click.echo(visible(json.dumps(value, ensure_ascii=False, indent=indent), LINES))


def progress(text: str, *, same_line: bool = False) -> None:
    """A line about work under way, on stderr, only for a person who watches."""
    if sys.stderr.isatty():
        shown = visible(text)
        click.echo(f"\r{shown}\033[K" if same_line else shown, err=True, nl=not same_line)


def table(rows: Iterable[Sequence[object]], header: Sequence[str]) -> str:
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

    return "\n".join([line(list(header)), "  ".join("-" * w for w in widths), *map(line, cells)])


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit()
