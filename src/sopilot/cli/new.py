"""``sopilot new``: a handbook to start from, with scenarios."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import NEW_FOLDER
from sopilot.cli.output import say
from sopilot.cli.serve import need_mcp
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
@click.option(
    "--upstream",
    type=click.Path(path_type=Path, exists=True),
    metavar="SERVERS",
    help="A file of MCP servers, as for `sopilot gateway`: write a handbook for their tools.",
)
@click.option(
    "--tools",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Write a handbook for the functions of a Python file (which is run) or the operations "
    "of an OpenAPI document (JSON).",
)
def command(
    name: str, folder: Path, force: bool, upstream: Path | None, tools: Path | None
) -> None:
    """Write NAME.yaml, a commented handbook that compiles, and NAME.scenarios.yaml.

    NAME is the handbook's name: lower-case letters, digits and hyphens. With --upstream or
    --tools, the handbook has an action per tool, with its inputs. Every tool that isn't known to
    only read asks the user first; add what it requires.
    """
    handbook, scenarios = starter(name)
    if upstream is not None or tools is not None:
        _write_first(name, folder / f"{name}.yaml", upstream, tools, force=force)
        return
    texts = {folder / f"{name}.yaml": handbook, folder / f"{name}.scenarios.yaml": scenarios}
    if not force:
        require_new(texts, "choose another name, or overwrite it with `--force`")
    for path, text in texts.items():
        write_whole(path, text, "name another folder")
        say(f"wrote {path}")
    written = next(iter(texts))
    say(f"next: edit {written}, then `sopilot check {written}`, `sopilot test {written}`")
    say(f"and `sopilot run {written}`, which plays its first scenario to the audit")


def _write_first(
    name: str, path: Path, upstream: Path | None, tools: Path | None, *, force: bool
) -> None:
    from sopilot.integrations.first_handbook import (
        first_handbook,
        tools_of_file,
        tools_of_servers,
    )

    if not force:
        require_new([path], "choose another name, or overwrite it with `--force`")
    if upstream is not None:
        need_mcp()
    known = tools_of_servers(upstream) if upstream is not None else []
    known += tools_of_file(tools) if tools is not None else []
    write_whole(path, first_handbook(name, known), "name another folder")
    say(f"wrote {path}: {len(known)} tools")
    say(f"next: write what each procedure requires, then `sopilot check {path}`")
