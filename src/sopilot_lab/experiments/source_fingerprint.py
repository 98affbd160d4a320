"""The code that decides how a run goes, as one hash: the version alone tells too little."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    *("sopilot/values", "sopilot/messages", "sopilot/protocols.py", "sopilot/trace"),
    *("sopilot/handbook", "sopilot/program", "sopilot/compiler", "sopilot/machine"),
    *("sopilot/audit", "sopilot/views", "sopilot/records", "sopilot/session", "sopilot/agent"),
    *("sopilot/files", "sopilot/stores", "sopilot/models", "sopilot/tasks"),
    *("sopilot_lab/sopbench", "sopilot_lab/experiments"),
)
_SOURCES: Final = Path(__file__).parents[2]
_AFTERWARDS: Final = ("sopilot_lab/experiments/report/", "sopilot/tasks/examples/")
"""Tables and pages of finished runs: they change no run."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Sources:
    """File → the hash of its contents."""

    files: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        text = "\n".join(f"{digest}  {name}" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def deciding_sources() -> Sources:
    """The sources of this process's packages, as they are on the disk."""
    return read_sources(_SOURCES)


def read_sources(folder: Path) -> Sources:
    """``folder`` holds the packages `sopilot` and `sopilot_lab`."""
    files = {
        path.relative_to(folder).as_posix(): path
        for package in PACKAGES
        for path in (folder / package, *(folder / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    return Sources(
        {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in sorted(files.items())
            if not name.startswith(_AFTERWARDS)
        }
    )


def describe_difference(then: Sources, now: Sources) -> str:
    """Name the files that differ."""
    old, new = then.files.keys(), now.files.keys()
    changed = {name for name in old & new if then.files[name] != now.files[name]}
    parts = {"changed": changed, "new": new - old, "gone": old - new}
    return "; ".join(f"{word} {_named(sorted(names))}" for word, names in parts.items() if names)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    rest = len(names) - _MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown
