"""Options of a command from a file."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.adapters.settings_file import read_settings
from sopilot.language.diagnostics import Place, did_you_mean, mistake


def read_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """The file's values are what is taken where the command line says nothing."""
    if path is None:
        return
    known = {one.opts[0].lstrip("-"): one.name for one in ctx.command.params}
    values = read_settings(path)
    for name in values:
        if name not in known:
            place = Place(str(path))
            raise mistake("unknown-setting", f"`{name}` is none", place, did_you_mean(name, known))
    ctx.default_map = {known[name] or "": value for name, value in values.items()}
