"""``sopilot.toml``: values for options that the command line and the environment leave out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON

NAME = "sopilot.toml"
VARIABLE = "SOPILOT_CONFIG"
SHARED = ("store", "model", "view", "language")
"""Keys that apply to every command with such an option. Every other key is a command's table."""
TOKEN_FILE = "sopilot.token_file"
"""Where the click context holds the file with the caller's access token."""

_LOCAL_STORE = "sqlite:"
_LOCAL_MODEL = "mailbox:"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values of a file."""

    path: Path = Path()
    values: Mapping[str, JSON] = field(default_factory=dict)

    def shared(self, name: str, option: click.Parameter, ctx: click.Context) -> Any:
        value = self.values.get(name)
        if name == "store" and isinstance(value, str) and value.startswith(_LOCAL_STORE):
            value = _LOCAL_STORE + self._resolved(value.removeprefix(_LOCAL_STORE))
        return None if value is None else self._converted(value, option, ctx, name)

    def table(self, name: str, command: click.Command, ctx: click.Context) -> dict[str, Any]:
        """The values of ``[name]`` by parameter, as click takes defaults."""
        values = self.values.get(name, {})
        return self._defaults(values, command, ctx, name) if isinstance(values, Mapping) else {}

    def _defaults(
        self, values: Mapping[str, JSON], command: click.Command, ctx: click.Context, path: str
    ) -> dict[str, Any]:
        commands = command.list_commands(ctx) if isinstance(command, click.Group) else ()
        options = {param.opts[0].lstrip("-"): param for param in command.params if param.name}
        defaults: dict[str, Any] = {}
        for key, value in values.items():
            where = f"{path}.{key}"
            if key in commands and isinstance(command, click.Group) and isinstance(value, Mapping):
                inner = command.get_command(ctx, key)
                assert inner is not None
                defaults[key] = self._defaults(value, inner, ctx, where)
            elif key in options:
                name = options[key].name
                assert name is not None
                defaults[name] = self._converted(value, options[key], ctx, where)
            else:
                raise _unknown(where, self.path, (*commands, *options))
        return defaults

    def _converted(self, value: Any, option: click.Parameter, ctx: click.Context, key: str) -> Any:
        if isinstance(option.type, click.Path) and isinstance(value, str):
            value = self._resolved(value)
        try:
            option.type_cast_value(ctx, value)
        except click.BadParameter as problem:
            message = f"`{key}`: {problem.message}"
            raise mistake("bad-setting", message, Place(str(self.path))) from None
        return value

    def _resolved(self, path: str) -> str:
        return str(self.path.parent / Path(path).expanduser())


def load_configuration(named: Path | None, commands: Iterable[str]) -> Configuration:
    """Read the file that the user names, or the nearest ``sopilot.toml``."""
    if named is None and (variable := os.environ.get(VARIABLE)):
        named = Path(variable)
    path = named or _nearest()
    if path is None:
        return Configuration()
    from sopilot.files.settings import read_settings  # help needs none of it

    values = read_settings(path, fill=named is not None)
    for key, value in values.items():
        if key in SHARED and isinstance(value, str):
            if named is None:
                _stays_here(path, key, value)
        elif key in SHARED:
            raise mistake("bad-setting", f"`{key}` must be text", Place(str(path)))
        elif key not in commands or not isinstance(value, Mapping):
            raise _unknown(key, path, (*SHARED, *(f"[{name}]" for name in commands)))
        elif named is None:
            raise _needs_naming(path, f"`[{key}]` sets options of a command")
    return Configuration(path, values)


def _nearest() -> Path | None:
    here = Path.cwd()
    return next(
        (file for folder in (here, *here.parents) if (file := folder / NAME).is_file()), None
    )


def _stays_here(path: Path, key: str, value: str) -> None:
    """Reject a file that would send data elsewhere, just because it lies in this folder."""
    if key == "store" and not value.startswith(_LOCAL_STORE):
        raise _needs_naming(path, "`store` isn't a local file")
    if key == "model" and "://" in value:
        raise _needs_naming(path, "`model` is an address")
    kind, _, inner = value.partition(":")
    if f"{kind}:" in (_LOCAL_STORE, _LOCAL_MODEL):
        base = path.parent if key == "store" else Path.cwd()
        target = (base / Path(inner).expanduser()).resolve()  # a link may lead elsewhere, too
        if not target.is_relative_to(path.parent.resolve()):
            raise _needs_naming(path, f"`{key}` is outside the folder of the file")


def _needs_naming(path: Path, why: str) -> UserMistake:
    help = f"if you trust the file, name it: `sopilot --config {path} …`, or set {VARIABLE}"
    return mistake("unnamed-configuration", why, Place(str(path)), help)


def _unknown(key: str, path: Path, known: Iterable[str]) -> UserMistake:
    help = f"known keys: {', '.join(known)}"
    return mistake("unknown-setting", f"`{key}` isn't a setting", Place(str(path)), help)
