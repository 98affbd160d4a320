"""A handbook to start from, with scenarios: it compiles, and its scenarios pass."""

from __future__ import annotations

from importlib import resources


def starter(name: str) -> tuple[str, str]:
    """The handbook of that name, and its scenario file."""
    folder = resources.files(__package__)
    handbook, scenarios = (
        folder.joinpath(f"starter_{file}.yaml").read_text(encoding="utf-8").replace("@name@", name)
        for file in ("handbook", "scenarios")
    )
    return handbook, scenarios
