"""How commands print: one JSON object for scripts, lines and tables for people.

Every word goes out through here. Text that others wrote can't move the cursor, change a colour or
hide anything.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import click

from sopilot.values.text import LINES, SPACES, Heading, Lines, visible


class Exit(IntEnum):
    """Exit codes; ``docs/reference/exit-codes.md`` explains them."""

    DONE = 0
    FINDINGS = 1
    MISUSE = 2
    REFUSED = 3
    WAITING = 4
    NOT_JUDGED = 5
    INTERRUPTED = 130

    @classmethod
    def if_any(cls, findings: object) -> Exit:
        return cls.FINDINGS if findings else cls.DONE


WANTS_JSON = "sopilot.json"
"""Where the click context holds whether the command's ``Output`` is printed as JSON."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command returns: a value for scripts, the same as lines for people, its exit code."""

    value: Any
    lines: Iterable[str]
    code: Exit = Exit.DONE
    indent: int | None = 2


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print text; ``style`` is click's."""
    shown = visible(text, LINES)
    click.echo(click.style(shown, **style) if style else shown, err=err, nl=nl)


def warn(text: str) -> None:
    """Print a word beside the result, on stderr, if there is one."""
    if text:
        say(text, err=True)


def marked(mark: str, text: str, **style: Any) -> None:
    """Print a line after a styled mark; further lines are indented below it."""
    first, *rest = visible(text, LINES).split("\n")
    click.echo(f"{click.style(mark, **style)} {first}")
    for line in rest:
        click.echo(f"{' ' * len(mark)} {line}")


def hand_out(text: str) -> None:
    """Print a file's text byte for byte, or made visible for a terminal."""
    # With `color`, click removes nothing that looks like an escape sequence.
    click.echo(visible(text, LINES) if sys.stdout.isatty() else text, nl=False, color=True)


def heading(text: str) -> None:
    say(text, bold=True)


def tell(lines: Iterable[str]) -> None:
    """Print each as one line, whatever names and values of others it holds."""
    for line in lines:
        shown = line if isinstance(line, Lines) else _one_line(line)
        heading(shown) if isinstance(line, Heading) else say(shown)


def _one_line(text: str) -> str:
    """Keep the empty lines before and after the text."""
    bare = text.strip("\n")
    return text.replace(bare, visible(bare, f"\t{SPACES}")) if bare else text


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print JSON with times in ISO 8601; hidden characters become JSON escapes."""
    text = json.dumps(_with_times(value), ensure_ascii=False, indent=indent)
    click.echo(visible(text, LINES))


def _with_times(value: Any, key: object = "") -> Any:
    """Seconds under names such as ``created_at`` as ISO 8601."""
    if isinstance(value, Mapping):
        return {name: _with_times(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_times(item) for item in value]
    is_time = key == "at" or (isinstance(key, str) and key.endswith("_at"))
    if is_time and isinstance(value, float) and 1e6 < value < 1e11:
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    return value


def give(as_json: bool, value: Any, lines: Iterable[str], *, indent: int | None = 2) -> None:
    """Print the value, or the result of calling it, as JSON, or the lines."""
    if as_json:
        print_json(value() if callable(value) else value, indent=indent)
    else:
        tell(lines)


def progress(text: str, *, same_line: bool = False) -> None:
    """Print a line about work under way on stderr, if a person watches."""
    if sys.stderr.isatty():
        shown = visible(text)
        click.echo(f"\r{shown}\033[K" if same_line else shown, err=True, nl=not same_line)


def open_streams() -> None:
    """Open closed standard streams on nothing, before a file takes their number."""
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
    """The exit code when output can't be written: full disk, closed stream, reader gone."""
    # Otherwise the interpreter tries again at its end and prints the problem.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if problem.errno != errno.EPIPE:
        with suppress(OSError):
            say(f"sopilot: {problem.strerror or problem}", err=True)
    return 1
