"""How commands speak: one JSON object for scripts, tables and plain lines for people.

Every word goes out through here. What others wrote may stand in it: nothing of that moves
a cursor, changes a colour or hides.

Streams that are closed, full or left by their reader.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import click

from sopilot.values.text import LINES, SPACES, Heading, Lines, visible

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of text."
)


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """``style`` is click's, for all of the text."""
    shown = visible(text, LINES)
    click.echo(click.style(shown, **style) if style else shown, err=err, nl=nl)


def warn(text: str) -> None:
    """Beside the answer, on stderr; nothing, where there is nothing to tell."""
    if text:
        say(text, err=True)


def marked(mark: str, text: str, **style: Any) -> None:
    """A line with a mark in front, in a style of its own; further lines stand below the text."""
    first, *rest = visible(text, LINES).split("\n")
    click.echo(f"{click.style(mark, **style)} {first}")
    for line in rest:
        click.echo(f"{' ' * len(mark)} {line}")


def hand_out(text: str) -> None:
    """A file's text, byte for byte; to a terminal as everything else."""
    # With `color` nothing is taken out that looks like one.
    click.echo(visible(text, LINES) if sys.stdout.isatty() else text, nl=False, color=True)


def heading(text: str) -> None:
    say(text, bold=True)


def tell(lines: Iterable[str]) -> None:
    """Each is one line, whatever names and values of others stand in it."""
    for line in lines:
        shown = line if isinstance(line, Lines) else _one_line(line)
        heading(shown) if isinstance(line, Heading) else say(shown)


def _one_line(text: str) -> str:
    """With the empty lines before and behind it."""
    bare = text.strip("\n")
    return text.replace(bare, visible(bare, f"\t{SPACES}")) if bare else text


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Still the same JSON: its strings have an escape for whatever is not shown."""
    click.echo(visible(json.dumps(value, ensure_ascii=False, indent=indent), LINES))


def give(as_json: bool, value: Any, lines: Iterable[str], *, indent: int | None = 2) -> None:
    """To a script the value, or what comes of calling it, to a person the lines."""
    if as_json:
        print_json(value() if callable(value) else value, indent=indent)
    else:
        tell(lines)


def progress(text: str, *, same_line: bool = False) -> None:
    """A line about work under way, on stderr, only for a person who watches."""
    if sys.stderr.isatty():
        shown = visible(text)
        click.echo(f"\r{shown}\033[K" if same_line else shown, err=True, nl=not same_line)


def open_streams() -> None:
    """A stream that was closed is opened on nothing, before a file takes its number: reading
    ends at once, writing fails as it would have."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as problem:
        return lost(problem)
    return code


def lost(problem: OSError) -> int:
    """What was to be told went nowhere: a full disk, a closed stream, a reader that left."""
    # Or the interpreter would try again at its end, and print what came of it.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if problem.errno != errno.EPIPE:
        with suppress(OSError):
            say(f"sopilot: {problem.strerror or problem}", err=True)
    return 1
