"""The arm that the last discipline check of a model recommends."""

from __future__ import annotations

from sopilot.agent import ARMS
from sopilot.cli.stores import data_folder
from sopilot.gate.folder import last_verdict

DEFAULT = "pg"


def checked_arm(model: str) -> tuple[str, str]:
    """The arm to use, and a sentence for the user; empty where nothing was checked."""
    found = last_verdict(data_folder(), model)
    arm = found.get("arm") if found is not None else None
    if found is None or not isinstance(arm, str) or arm not in ARMS:
        return DEFAULT, ""
    word = "page" if found.get("page") is True else "do not page"
    cases, planned = found.get("cases"), found.get("planned")
    return arm, (
        f"arm {arm}: the last check of `{model}` says {word} ({cases} of {planned} cases); "
        "another one with --arm"
    )
