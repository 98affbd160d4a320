"""A user's data folder changes no test: neither a full one nor a damaged one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sopilot.runner import qualifications as checks
from sopilot.stores.open import data_folder

ROOT = Path(__file__).parents[2]
BY_COMMAND = "test_killed_from_outside_and_resumed_by_command"
"""It names no view, so that a stored verdict would choose one."""
_SEEN: set[Path] = set()


@pytest.mark.parametrize("number", [1, 2])
def test_every_test_has_a_home_of_its_own(number: int) -> None:
    home = data_folder()
    assert home not in _SEEN
    assert not home.exists()
    assert Path.home() in home.parents
    assert not (Path.home() / ".local").exists()
    _SEEN.add(home)
    home.mkdir()


def a_users_home(folder: Path) -> dict[str, str]:
    """A verdict that changes the view of every run, and files that cannot be read, in all the
    places where a user may have them."""
    for home in (folder / "data" / "sopilot", folder / ".local" / "share" / "sopilot"):
        verdict = checks.model_folder(home, "reference") / checks.LATEST
        verdict.parent.mkdir(parents=True)
        verdict.write_text(json.dumps({"arm": "flat", "page": False, "cases": 4, "planned": 4}))
        (home / "sessions.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
        for name in ("tool-pins.json", "trusted-folders.json"):
            (home / name).write_text("{")
    return {
        **os.environ,
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "SOPILOT_HOME": str(folder / "data" / "sopilot"),
    }


def test_no_verdict_of_the_user_and_no_damage_reaches_a_test(tmp_path: Path) -> None:
    chosen = str(ROOT / "tests/agent/test_kill_and_resume.py") + "::" + BY_COMMAND
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", chosen],
        cwd=ROOT,
        env=a_users_home(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
