"""What values of options are: files, folders, numbers; and several options as one.

Options of a command from a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import click

from sopilot.files.settings import read_settings
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import mistake

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


NEW_FILE = click.Path(dir_okay=False, path_type=Path)


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


EITHER = click.Path(exists=True, path_type=Path)


NEW = click.Path(path_type=Path)


NEW_FOLDER = click.Path(file_okay=False, path_type=Path)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def all_of(*options: Decorator) -> Decorator:
    """Options as they stand above a command: help names them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def finite(command: click.Command) -> click.Command:
    """The command, none of whose numbers may be "not a number", which no comparison refuses, or
    without end."""
    for param in command.params:
        known = isinstance(param.type, _Finite)
        if isinstance(param.type, click.types.FloatParamType) and not known:
            kind = type(param.type)
            param.type = copy(param.type)
            param.type.__class__ = type(kind.__name__, (_Finite, kind), {})
    if isinstance(command, click.Group):
        for item in command.commands.values():
            finite(item)
    return command


class _Finite(click.types.FloatParamType):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        result = float(super().convert(value, param, ctx))
        if not math.isfinite(result):
            self.fail(f"{value} is no number that can be counted with", param, ctx)
        return result


def read_config(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """The file's values are what is taken where the command line says nothing."""
    if path is None:
        return
    known = {item.opts[0].lstrip("-"): item.name for item in ctx.command.params}
    values = read_settings(path)
    for name in values:
        if name not in known:
            place = Place(str(path))
            raise mistake("unknown-setting", f"`{name}` is none", place, did_you_mean(name, known))
    ctx.default_map = {known[name] or "": value for name, value in values.items()}
