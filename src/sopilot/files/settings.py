"""Files of settings, in which `${NAME}` stands for a variable of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from sopilot.files.text import load_yaml, read_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.values.json import JSON

_VARIABLE = re.compile(r"\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^${}]*))?\})?")
"""What begins as a variable and is none has no name."""


def read_settings(path: Path) -> dict[str, JSON]:
    """YAML or JSON, an object, with its variables filled in."""
    try:
        result = load_yaml(read_text(path))
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        message = str(problem).split("\n")[0]
        raise mistake(
            "bad-settings", f"the settings cannot be read: {message}", Place(str(path))
        ) from None
    if not isinstance(result, dict):
        raise mistake("bad-settings", "settings are an object of names", Place(str(path)))
    return {str(name): filled(value, str(path)) for name, value in result.items()}


def filled(value: JSON, source: str, environment: Mapping[str, str] | None = None) -> JSON:
    """With `${NAME}` and `${NAME:-otherwise}` in its texts filled in; a name that is not set, or
    empty, and has no other value is a mistake, since an empty token would open a door."""
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
        message = f"`{result.string[result.start() :][:40]}` is no variable"
        raise mistake("bad-variable", message, Place(source), cure)
    value = names.get(name) or otherwise
    if value is None:
        cure = f"set it, or write ${{{name}:-VALUE}}"
        raise mistake("unset-variable", f"`${{{name}}}` is not set", Place(source), cure)
    return value
