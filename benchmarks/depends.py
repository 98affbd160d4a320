"""What a campaign depends on: its script, and whatever of this project that imports or names.

Imports are followed wherever they stand; so is a text that names a module, which stands for its
room (commands are loaded by their names), or another script of this folder, which is then run.
Files that are no Python belong to the package in which they lie.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Sources:
    """A project's: ``src/PACKAGE`` and the scripts in ``benchmarks``."""

    def __init__(self, root: Path = ROOT, package: str = "sopilot") -> None:
        self._root = root
        self._package = package
        self._named = cache(lambda path: frozenset(self._names(path)))
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

    def changed_since(self, commit: str, script: str) -> bool:
        """In the working tree; yes, where that cannot be told."""
        files = [str(path.relative_to(self._root)) for path in sorted(self.behind(script))]
        command = ["git", "diff", "--quiet", commit, "--", *files]
        return subprocess.run(command, cwd=self._root, capture_output=True).returncode != 0

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
                    elif text.startswith(f"{self._package}."):
                        yield from self._behind_name(text, True)

    def _module(self, name: str, *, whole: bool = False) -> Iterator[Path]:
        """The files behind a dotted name, packages on the way among them."""
        first, *rest = name.split(".")
        if first != self._package:
            for path in (self._root / "benchmarks" / f"{first}.py",):
                yield from (path,) if path.is_file() else ()
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
