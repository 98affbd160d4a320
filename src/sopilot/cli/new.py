"""``sopilot new``: a handbook to start from, with scenarios."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import NEW_FOLDER
from sopilot.cli.output import say
from sopilot.files.text import require_new, write_whole
from sopilot.tasks.starter import starter


@click.command()
@click.argument("name")
@click.option(
    "--in",
    "folder",
    type=NEW_FOLDER,
    default=Path(),
    help="The folder to write to. Default: the present one.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are already there.")
def command(name: str, folder: Path, force: bool) -> None:
    """Write NAME.yaml, a commented handbook that compiles, and NAME.scenarios.yaml.

    NAME is the handbook's name: lower-case letters, digits and hyphens.
    """
    handbook, scenarios = starter(name)
    texts = {folder / f"{name}.yaml": handbook, folder / f"{name}.scenarios.yaml": scenarios}
    if not force:
        require_new(texts, "choose another name, or overwrite it with `--force`")
    for path, text in texts.items():
        write_whole(path, text, "name another folder")
        say(f"wrote {path}")
    written = next(iter(texts))
    say(f"next: edit {written}, then `sopilot check {written}`, `sopilot test {written}`")
    say(f"and `sopilot run {written}`, which plays its first scenario to the audit")
