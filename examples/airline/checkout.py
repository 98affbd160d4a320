"""The τ-bench checkout, and the parts in use: the airline's tools, data and tasks.

τ-bench (sierra-research/tau-bench, MIT) is read from a checkout and not shipped. Its packages
import a model library that nothing here needs, so the packages above the airline's tools stand
in as bare names, and every file below them is the checkout's own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake

UPSTREAM = "https://github.com/sierra-research/tau-bench"
SNAPSHOT = "59a200c"
"""The commit with the fifty tasks of the published figures."""
HOME_VARIABLE = "TAUBENCH_HOME"
_AIRLINE = "tau_bench/envs/airline"
_NEEDED = (
    "tau_bench/types.py",
    f"{_AIRLINE}/tools",
    f"{_AIRLINE}/data",
    f"{_AIRLINE}/tasks_test.py",
)
_BARE = ("tau_bench", "tau_bench.envs", "tau_bench.envs.airline")


@dataclass(frozen=True, slots=True)
class GoldTask:
    """A task of the checkout: what its user is told to want, and what should be called."""

    name: str
    user_id: str
    instruction: str
    actions: tuple[tuple[str, dict[str, Any]], ...]
    outputs: tuple[str, ...]


def checkout_home(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of the checkout: ``TAUBENCH_HOME``, else in the user's cache folder."""
    values = os.environ if environment is None else environment
    named = values.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    cache = values.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sopilot" / "taubench"


def find_checkout(environment: Mapping[str, str] | None = None) -> Path:
    """The checkout; raise ``UserMistake`` with the command that fetches it."""
    home = checkout_home(environment)
    missing = [name for name in _NEEDED if not (home / name).exists()]
    if missing:
        what = "does not exist" if not home.is_dir() else f"lacks `{missing[0]}`"
        cure = (
            f"get it with `git clone {UPSTREAM} {home} && git -C {home} checkout {SNAPSHOT}`, "
            f"or point {HOME_VARIABLE} at a checkout"
        )
        message = f"no τ-bench checkout: `{home}` {what}"
        raise UserMistake([Diagnostic("taubench-missing", message, Place(str(home)), cure)])
    return home.resolve()


def load_tools(home: Path) -> dict[str, Any]:
    """The checkout's own tool classes, by the name of the tool."""
    module = _module(home, "tau_bench.envs.airline.tools")
    return {tool.get_info()["function"]["name"]: tool for tool in module.ALL_TOOLS}


def load_data(home: Path) -> str:
    """The whole data as JSON text, which every simulator reads anew."""
    folder = home / _AIRLINE / "data"
    return json.dumps(
        {
            name: json.loads((folder / f"{name}.json").read_text("utf-8"))
            for name in ("flights", "reservations", "users")
        }
    )


def load_tasks(home: Path) -> list[GoldTask]:
    module = _module(home, "tau_bench.envs.airline.tasks_test")
    return [
        GoldTask(
            str(number),
            task.user_id,
            task.instruction,
            tuple((one.name, dict(one.kwargs)) for one in task.actions),
            tuple(task.outputs),
        )
        for number, task in enumerate(module.TASKS)
    ]


def _module(home: Path, name: str) -> ModuleType:
    for package in _BARE:
        if package not in sys.modules:
            bare = ModuleType(package)
            bare.__path__ = [str(home.joinpath(*package.split(".")))]
            sys.modules[package] = bare
    return importlib.import_module(name)
