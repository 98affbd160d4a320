"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sopilot.cli.configuration import TOKEN_FILE, Configuration
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


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of text."
)
LANGUAGE = _configured(
    "--language", type=click.Choice(["en", "zh"]), default="en", show_default=True,
    help="Language of results and of texts for the model.",
)  # fmt: skip
MODEL = _configured(
    "--model", default="reference", show_default=True, metavar="MODEL", help="Model to run."
)
VIEW = _configured("--view", metavar="VIEW", help="How much of the handbook the model sees.")
BY = click.option(
    "--as", "by", default="", metavar="NAME", help="Your name. Taken from the token if you use one."
)
SESSION = click.argument("session_id", metavar="ID")
WHY = click.option("--why", required=True, help="Reason to record.")
GOAL = click.option("--goal", metavar="NAME", help="Use only this procedure.")
TOOLS = click.option(
    "--tools",
    type=click.Choice(["official", "full-state"]),
    help="Tool list of SOPBench: without or with the readers of the whole database.",
)

_STORE = _configured(
    "--store", "store_spec", metavar="sqlite:PATH|postgres:DSN",
    help="Session store. Default: sessions.db in your data folder.",
)  # fmt: skip


def period(since: str, until: str, *, required: bool = False) -> Decorator:
    """``--from`` and ``--to``, both inclusive."""
    return all_of(
        click.option("--from", "begin", required=required, metavar="DATE", help=f"{since} (UTC)."),
        click.option("--to", "end", required=required, metavar="DATE", help=f"{until} (UTC)."),
    )


def STORE(command: Function) -> Function:
    """Pass ``store``, a ``StoreAccess`` with the caller's token, and the full id of a session
    that the user names."""

    @functools.wraps(command)
    def run(*value: Any, store_spec: str | None, **named: Any) -> Any:
        store = StoreAccess(store_spec, click.get_current_context().meta.get(TOKEN_FILE))
        if named.get("session_id"):
            named["session_id"] = store.session_id(named["session_id"])
        return command(*value, store=store, **named)

    return _STORE(run)
