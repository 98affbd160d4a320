"""Files of settings, in which `${NAME}` stands for an environment variable."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.values.json import JSON

_VARIABLE = re.compile(r"\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^${}]*))?\})?")
"""A match without a name begins like a variable and isn't one."""


def read_settings(path: Path, *, fill: bool = True) -> dict[str, JSON]:
    """Read a TOML file; ``fill`` in its variables."""
    try:
        values = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        message = f"the settings can't be read: {problem}"
        raise mistake("bad-settings", message, Place(str(path))) from None
    return {name: filled(value, str(path)) if fill else value for name, value in values.items()}


def filled(value: JSON, source: str, environment: Mapping[str, str] | None = None) -> JSON:
    """Fill in `${NAME}` and `${NAME:-default}`. An unset or empty variable without a default is a
    mistake: an empty token would let everybody in."""
    names = os.environ if environment is None else environment
    if isinstance(value, str):
        return _VARIABLE.sub(lambda result: _value(result, names, source), value)
    if isinstance(value, Mapping):
        return {str(name): filled(item, source, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, source, names) for item in value]
    return value


def _value(result: re.Match[str], names: Mapping[str, str], source: str) -> str:
    name: str | None = result[1]
    otherwise: str | None = result[2]
    if name is None:
        cure = "write ${NAME} or ${NAME:-VALUE}, where VALUE has no $ and no braces"
        message = f"`{result.string[result.start() :][:40]}` isn't a variable"
        raise mistake("bad-variable", message, Place(source), cure)
    value = names.get(name) or otherwise
    if value is None:
        cure = f"set it, or write ${{{name}:-VALUE}}"
        raise mistake("unset-variable", f"`${{{name}}}` isn't set", Place(source), cure)
    return value
