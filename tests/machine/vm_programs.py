"""Programs written by hand, for the machine's tests."""

from __future__ import annotations

from pathlib import Path

from sopilot.program.codec import program_from_yaml
from sopilot.program.model import Function, Program, Source

SOURCE = Source("bank", "transfer", "0" * 64)


def program(entry: str, *functions: Function, constants: dict[str, int] | None = None) -> Program:
    return Program(
        entry,
        {function.name: function for function in functions},
        SOURCE,
        "test",
        dict(constants or {}),
    )


def _written(name: str) -> Program:
    path = Path(__file__).parent / "programs" / f"{name}.yaml"
    return program_from_yaml(path.read_text(encoding="utf-8"), path.name)


TRANSFER, ERRAND = _written("transfer"), _written("errand")
PROGRAMS = {"transfer": TRANSFER, "errand": ERRAND}
