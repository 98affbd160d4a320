"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sopilot.cli.configuration import TOKEN_FILE, Configuration
from sopilot.cli.output import WANTS_JSON
from sopilot.runner.store_access import StoreAccess

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
EITHER = click.Path(exists=True, path_type=Path)
NEW = click.Path(path_type=Path)

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


class ConfiguredOption(click.Option):
    """An option whose default ``sopilot.toml`` can set."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        configuration = ctx.find_root().obj
        if isinstance(configuration, Configuration):
            name = self.opts[0].lstrip("-")
            if (value := configuration.shared(name, self, ctx)) is not None:
                return value
        return super().get_default(ctx, call)


def option(usage: str, help: str, name: str = "", **settings: Any) -> Decorator:
    """An option, written as help shows it: ``--task NAME`` or ``-o,--output FILE``. ``name`` is
    that of the parameter."""
    flags, _, metavar = usage.partition(" ")
    names = (*flags.split(","), *([name] if name else []))
    return click.option(*names, metavar=metavar or None, help=help, **settings)


def flag(usage: str, help: str, name: str = "", **settings: Any) -> Decorator:
    return option(usage, help, name, is_flag=True, **settings)


def all_of(*options: Decorator) -> Decorator:
    """Several options as one decorator; help lists them in this order."""

    def decorate(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _configured(name: str, *names: str, **settings: Any) -> Decorator:
    variable = f"SOPILOT_{name.removeprefix('--').upper()}"
    return click.option(name, *names, cls=ConfiguredOption, envvar=variable, **settings)


JSON_HELP = "Print one JSON object instead of text."


def _note_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[WANTS_JSON] = value


AS_JSON = flag("--json", JSON_HELP, expose_value=False, callback=_note_json)
"""For a command that returns its ``Output``."""


def wants_json() -> bool:
    return bool(click.get_current_context().meta[WANTS_JSON])


json_option = flag("--json", JSON_HELP, "as_json")
"""For a command that prints by itself."""
LANGUAGE = _configured(
    "--language", type=click.Choice(["en", "zh"]), default="en", show_default=True,
    help="Language of results and of the texts that the model reads.",
)  # fmt: skip
MODEL = _configured(
    "--model", default="reference", show_default=True, metavar="MODEL", help="Model to run."
)
VIEW = _configured("--view", metavar="VIEW", help="How much of the handbook the model sees.")
BY = option("--as NAME", "Your name. Taken from the token if you use one.", "by", default="")
WHY = option("--why", "Reason to record.", required=True)
GOAL = option("--goal NAME", "Use only this procedure.")
TOOLS = option(
    "--tools",
    "SOPBench tool list: `full-state` adds the tools that read the whole database.",
    type=click.Choice(["official", "full-state"]),
)


def _store_access(ctx: click.Context, param: click.Parameter, spec: str | None) -> StoreAccess:
    return StoreAccess(spec, ctx.meta.get(TOKEN_FILE))


STORE = _configured(
    "--store", is_eager=True, callback=_store_access, metavar="STORE",
    help="sqlite:PATH or postgres:DSN. Default: sessions.db in your data folder.",
)  # fmt: skip
"""Passes ``store``, a ``StoreAccess`` with the caller's token, before it reads session ids."""
IN_STORE = all_of(STORE, AS_JSON)


def full_id(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Callback of options that name sessions of the ``STORE``: their full ids."""
    if not value or ctx.resilient_parsing:
        return value
    store: StoreAccess = ctx.params["store"]
    if isinstance(value, tuple):
        return tuple(map(store.session_id, value))
    return store.session_id(value)


SESSION = click.argument("session_id", metavar="ID", callback=full_id)


def period(since: str, until: str, *, required: bool = False) -> Decorator:
    """``--from`` and ``--to``, both inclusive."""
    return all_of(
        option("--from DATE", f"{since} (UTC).", "begin", required=required),
        option("--to DATE", f"{until} (UTC).", "end", required=required),
    )
