"""``sopilot format``: handbooks in their normal layout; comments and order stay."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.output import say
from sopilot.files.text import read_text, write_whole
from sopilot.handbook.formatter import format_handbook
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if a file would change.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the result; change no file.")
def command(files: tuple[str, ...], check: bool, to_stdout: bool) -> None:
    """Lay handbooks and scenario files out in one way. Comments and order stay."""
    if check and to_stdout:
        raise UserMistake("`--check` and `--stdout` exclude each other")
    mistakes: list[Diagnostic] = []
    formatted: list[tuple[Path, str, str]] = []
    for name in files:
        path = Path(name)
        try:
            text = read_text(path)
            formatted.append((path, text, format_handbook(text, name)))
        except UserMistake as mistake:
            mistakes.extend(mistake.diagnostics)
    if mistakes:
        # All or nothing: a half-formatted folder is harder to review than none.
        raise UserMistake(mistakes)
    changed = 0
    for path, before, after in formatted:
        if to_stdout:
            say(after.rstrip("\n"))
        elif before != after:
            changed += 1
            say(f"{'would change' if check else 'formatted'} {path}")
            if not check:
                write_whole(path, after)
    if not to_stdout:
        noun = "file" if len(formatted) == 1 else "files"
        verb = "would change" if check else "changed"
        say(f"{len(formatted)} {noun}: {changed} {verb}")
    if check and changed:
        raise SystemExit(1)
