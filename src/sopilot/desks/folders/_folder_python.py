"""The Python of a folder. It runs because somebody named the folder on the command line;
nothing that a program or a handbook says is ever run."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from types import ModuleType

from sopilot.language.diagnostics import UserMistake


def folder_module(folder: Path, file: str) -> ModuleType:
    """``file`` as part of a package of its own, so that it can import its neighbours."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    package = f"sopilot_folder_{digest}"
    if not (folder / file).exists():
        raise UserMistake(f"{folder} has no {file}")
    if package not in sys.modules:
        # Neighbours are found by the path alone; an `__init__.py` is welcome, not needed.
        module = ModuleType(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
    return importlib.import_module(f"{package}.{Path(file).stem}")
