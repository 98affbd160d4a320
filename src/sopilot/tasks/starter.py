"""A handbook to start from, with scenarios: it compiles, and its scenarios pass."""

from __future__ import annotations

import re
from importlib import resources

from sopilot.handbook.grammar import HANDBOOK_NAME
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake


def starter(name: str) -> tuple[str, str]:
    """The handbook of that name, and its scenario file."""
    _check_name(name)
    folder = resources.files(__package__)
    handbook, scenarios = (
        folder.joinpath(f"starter_{file}.yaml").read_text(encoding="utf-8").replace("@name@", name)
        for file in ("handbook", "scenarios")
    )
    return handbook, scenarios


def _check_name(name: str) -> None:
    if re.fullmatch(HANDBOOK_NAME, name):
        return
    near = re.sub(r"[^a-z0-9]+", "-", name.lower().removesuffix(".yaml")).strip("-")
    raise mistake(
        "bad-identifier",
        f"`{name}` cannot name a handbook: lower-case letters, digits and hyphens",
        Place("sopilot new"),
        f"for example `{near}`" if re.fullmatch(HANDBOOK_NAME, near) else "",
    )
