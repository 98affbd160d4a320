"""Find the SOPBench checkout.

SOPBench carries no licence, so it is read from a checkout and never shipped.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake

UPSTREAM = "https://github.com/Leezekun/SOPBench"
SNAPSHOT = "e786bed"
"""The commit whose data set has the 830 tasks of the study."""
HOME_VARIABLE = "SOPBENCH_HOME"
_NEEDED = ("env/task.py", "env/evaluator.py", "env/domains", "data/bank_tasks.json")


@dataclass(frozen=True, slots=True)
class Checkout:
    """``commit`` is the full hash at its head, or ``None`` where git can't tell."""

    path: Path
    commit: str | None


def checkout_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that is looked at: ``SOPBENCH_HOME``, else the user's cache folder."""
    named = environment.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    return cache_folder("sopbench", environment)


def cache_folder(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """A folder of this project's in the user's cache."""
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sopilot" / name


def fetch_command(home: Path) -> str:
    """The command that gets the checkout."""
    return f"git clone {UPSTREAM} {home} && git -C {home} checkout {SNAPSHOT}"


def find_checkout(environment: Mapping[str, str] = os.environ) -> Checkout:
    """The checkout, or a ``UserMistake`` that says how to get one."""
    home = checkout_home(environment)
    missing = [name for name in _NEEDED if not (home / name).exists()]
    if missing:
        what = "does not exist" if not home.is_dir() else f"lacks `{missing[0]}`"
        raise mistake(
            "sopbench-missing",
            f"no SOPBench checkout: `{home}` {what}",
            Place(source=str(home)),
            f"get the 830-task snapshot with `{fetch_command(home)}`, "
            f"or point {HOME_VARIABLE} at a checkout",
        )
    return Checkout(home.resolve(), _head(home / ".git"))


def _head(git: Path) -> str | None:
    """The commit at the head of a clone or a linked work tree."""
    command = ["git", "--git-dir", str(git), "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
