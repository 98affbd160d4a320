"""Commands that load on use, so that help is instant."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import click

from sopilot.messages.diagnostic import did_you_mean

Entry = str | tuple[str, str]


class LazyGroup(click.Group):
    """``commands_on_use`` maps a name to a line of help, or to the place of the command and that
    line; or a heading to such a mapping. The default place is ``command`` in the module of that
    name in ``package``; another place is ``module.attribute`` there, or
    ``package.module:attribute`` anywhere."""

    def __init__(
        self,
        *value: Any,
        package: str,
        commands_on_use: Mapping[str, Entry | Mapping[str, Entry]],
        **named: Any,
    ) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(*value, context_settings=settings, **named)
        self._package = package
        self._headings: dict[str, list[str]] = {}
        self._on_use: dict[str, tuple[str, str]] = {}
        for name, about in commands_on_use.items():
            heading, entries = (
                (name, about) if isinstance(about, Mapping) else ("Commands", {name: about})
            )
            self._headings.setdefault(heading, []).extend(entries)
            for command, line in entries.items():
                place = (f"{command}.command", line) if isinstance(line, str) else line
                self._on_use[command] = place

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._on_use)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._on_use:
            return None
        place = self._on_use[cmd_name][0]
        if ":" not in place:
            place = f"{self._package}.{place.replace('.', ':')}"
        module, attribute = place.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return finite(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._on_use and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self._on_use)
            raise click.UsageError(f"no such command `{args[0]}`; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        for heading, names in self._headings.items():
            formatter.write_heading(heading)
            formatter.indent()
            formatter.write_dl([(name, self._on_use[name][1]) for name in names])
            formatter.dedent()


def finite(command: click.Command) -> click.Command:
    """Make every number of the command reject NaN, which passes any comparison, and infinity."""
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
            self.fail(f"{value} isn't a finite number", param, ctx)
        return result
