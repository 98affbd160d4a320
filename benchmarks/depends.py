"""The files that a campaign depends on: its script, and all of this project that it names.

Imports are followed wherever they stand; so is a text that names a module, which stands for its
room (commands are loaded by their names), or another script of this folder, which is then run.
Campaigns share code with tests, so modules of `tests` are followed too.
Files that are no Python belong to the package in which they lie.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Sources:
    """Of a project: the packages in ``src`` and the scripts in ``benchmarks``."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._packages = {path.name for path in (root / "src").iterdir() if path.is_dir()}
        self._beside: dict[str, list[Path]] = {}
        for folder in ("benchmarks", "tests"):
            for path in (root / folder).rglob("*.py"):
                self._beside.setdefault(path.stem, []).append(path)
        self._named = cache(lambda path: frozenset(self._names(path)))
        self._hashed = cache(lambda path: hashlib.sha256(path.read_bytes()).hexdigest())
        self._behind_name = cache(lambda name, whole: (*self._module(name, whole=whole),))

    def behind(self, script: str) -> set[Path]:
        found: set[Path] = set()
        todo = [self._root / "benchmarks" / script]
        while todo:
            path = todo.pop()
            if path in found:
                continue
            found.add(path)
            if path.suffix == ".py":
                todo += [one for one in self._named(path) if one not in found]
        return found

    def digest(self, script: str) -> str:
        """SHA-256 over the names and contents of all files that the script depends on."""
        whole = hashlib.sha256()
        for path in sorted(self.behind(script)):
            whole.update(f"{path.relative_to(self._root)} {self._hashed(path)}\n".encode())
        return whole.hexdigest()

    def _names(self, path: Path) -> Iterator[Path]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    for one in names:
                        yield from self._behind_name(one.name, False)
                case ast.ImportFrom(module=str() as module, names=names, level=0):
                    for one in names:
                        yield from self._behind_name(f"{module}.{one.name}", False)
                case ast.Constant(value=str() as text) if len(text) < 200:
                    script = path.parent / text
                    if text.endswith(".py") and path.parent.name == "benchmarks":
                        yield from (script,) if script.is_file() else ()
                    elif text.partition(".")[0] in self._packages and "." in text:
                        yield from self._behind_name(text, True)

    def _module(self, name: str, *, whole: bool = False) -> Iterator[Path]:
        """The files behind a dotted name, packages on the way among them."""
        first, *rest = name.split(".")
        if first not in self._packages:
            yield from self._beside.get(first, ())
            return
        folder = self._root / "src" / first
        for part in ["", *rest]:
            module = folder / f"{part}.py"
            if part and not (folder / part).is_dir():
                yield from (module,) if module.is_file() else ()
                break
            folder = folder / part
            yield from _data(folder)
            yield from (path for path in (folder / "__init__.py",) if path.is_file())
        if whole:
            yield from folder.glob("*.py")


def _data(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            yield path
