"""The code that decides how a run goes, as one hash: the version alone tells too little."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[2]
ROOMS: Final = ("language", "runtime", "adapters", "lab/bench")
_AFTERWARDS: Final = "lab/bench/report/"
"""Tables of finished runs: they change no run."""


@functools.cache
def deciding_sources() -> str:
    """Of this process's package, as it lies on the disk."""
    return hash_sources(_PACKAGE)


def hash_sources(package: Path) -> str:
    digest = hashlib.sha256()
    files = {
        path.relative_to(package).as_posix(): path
        for room in ROOMS
        for path in (package / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name, path in sorted(files.items()):
        if not name.startswith(_AFTERWARDS):
            digest.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
