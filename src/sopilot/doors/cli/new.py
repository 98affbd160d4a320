"""``sopilot new``: a handbook to start from, with scenarios."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from sopilot.adapters.text_files import write_whole
from sopilot.desks.scenarios.starter import starter
from sopilot.doors.cli.output import say
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, mistake
from sopilot.language.handbook.grammar import HANDBOOK_NAME


@click.command()
@click.argument("name")
@click.option(
    "--in",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder to write to. Default: the present one.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are already there.")
def command(name: str, folder: Path, force: bool) -> None:
    """Write NAME.yaml, a commented handbook that compiles, and NAME.scenarios.yaml.

    NAME is the handbook's name: lower-case letters, digits and hyphens.
    """
    _check_name(name)
    handbook, scenarios = starter(name)
    texts = {folder / f"{name}.yaml": handbook, folder / f"{name}.scenarios.yaml": scenarios}
    there = [path for path in texts if os.path.exists(path)]
    if there and not force:
        raise UserMistake(
            [
                Diagnostic(
                    "file-exists",
                    "the file is already there",
                    Place(str(path)),
                    "choose another name, or overwrite it with `--force`",
                )
                for path in there
            ]
        )
    for path, text in texts.items():
        write_whole(path, text, "name another folder")
        say(f"wrote {path}")
    written = next(iter(texts))
    say(f"next: edit {written}, then `sopilot check {written}`, `sopilot test {written}`")
    say(f"and `sopilot run {written}`, which plays its first scenario to the audit")


def _check_name(name: str) -> None:
    if re.fullmatch(HANDBOOK_NAME, name):
        return
    near = re.sub(r"[^a-z0-9]+", "-", name.lower().removesuffix(".yaml")).strip("-")
    raise mistake(
        "bad-identifier",
        f"`{name}` cannot name a handbook: lower-case letters, digits and hyphens",
        Place("sopilot new"),
        f"for example `{near}`" if re.fullmatch(HANDBOOK_NAME, near) else "",
    )
