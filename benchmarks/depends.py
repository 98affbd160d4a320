"""The files that a campaign runs: its script and what that imports of this project.

- Imports are followed through the whole project, where they stand in a function too. Imports for
  type checkers alone don't count, nor does a name that a package loads on use, unless it is used.
- A text in a script of `benchmarks` or `tests` may name a module, which is started then, or a file
  beside the script. A command that a `cli` package loads on use counts if a script says its name.
- Data files in a package belong to it, documents don't.

Comments and docstrings don't count: only what a campaign executes makes its evidence stale.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SCRIPTS = ("benchmarks", "tests", "examples")
_KEEPERS = ("evidence.py", "depends.py")
"""Say how results are kept, not how they are obtained."""
_DOCUMENTS = (".md", ".typed", ".pyc")


class Sources:
    """Of a project: the packages in ``src``, and the scripts in ``benchmarks``, which may import
    modules of ``tests`` and ``examples``."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._packages = {path.name: path for path in (root / "src").iterdir() if path.is_dir()}
        self._modules: dict[str, list[Path]] = {}
        for path in (path for folder in _SCRIPTS for path in (root / folder).rglob("*.py")):
            name = path.parent.name if path.stem == "__init__" else path.stem
            self._modules.setdefault(name, []).append(path)
        self._next = cache(lambda path: frozenset(self._imported(path)))
        self._hashed = cache(_hash)
        self._used = cache(_names_loaded_on_use)
        self._words = cache(_words)
        self._commands = cache(lambda path: [*self._loaded_by_name(path)])

    def behind(self, script: str) -> set[Path]:
        reached: set[Path] = set()
        source, words = self._root / "src", set[str]()
        todo, later = [self._root / "benchmarks" / script], list[Path]()
        while todo or later:
            path = (todo or later).pop()
            if path in reached:
                continue
            if path.is_relative_to(source) and todo:
                later.append(path)  # the scripts first, whose words choose the commands
                continue
            reached.add(path)
            if path.suffix == ".py":
                todo += self._next(path)
                if path.is_relative_to(source):
                    for command, modules in self._commands(path):
                        todo += modules if command in words else ()
                else:
                    words |= self._words(path)
        return reached

    def digest(self, script: str) -> str:
        """SHA-256 over the names and contents of all files that the script runs."""
        whole = hashlib.sha256()
        for path in sorted(self.behind(script)):
            whole.update(f"{path.relative_to(self._root)} {self._hashed(path)}\n".encode())
        return whole.hexdigest()

    def _imported(self, path: Path) -> Iterator[Path]:
        in_source = path.is_relative_to(self._root / "src")
        for node in _executed(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    for each in names:
                        yield from self._module(each.name, path)
                case ast.ImportFrom(module=str() as module, names=names, level=0):
                    for each in names:
                        yield from self._module(f"{module}.{each.name}", path)
                case ast.Attribute(value=ast.Name(id=package), attr=name) if (
                    package in self._packages
                ):
                    yield from self._module(f"{package}.{name}", path)
                case ast.Constant(value=str() as text) if not in_source and len(text) < 200:
                    if text.partition(".")[0] in self._packages and "." in text:
                        yield from self._module(text, path)
                    elif "\0" not in text and text not in _KEEPERS:
                        yield from (each for each in [path.parent / text] if each.is_file())

    def _loaded_by_name(self, path: Path) -> Iterator[tuple[str, list[Path]]]:
        """The commands that a module of a `cli` package names, each with its files."""
        entries = (
            entry
            for node in _executed(ast.parse(path.read_text("utf-8")))
            if path.parent.name == "cli" and isinstance(node, ast.Dict)
            for entry in zip(node.keys, node.values, strict=True)
        )
        for key, value in entries:
            if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple | ast.Constant):
                name, files = str(key.value), list[Path]()
                for text in (name, *(str(getattr(each, "value", "")) for each in ast.walk(value))):
                    files += self._module(text.partition(":")[0], path) if ":" in text else ()
                    beside = path.with_name(f"{text.partition('.')[0]}.py")
                    files += [beside] if text.isascii() and beside.is_file() else []
                yield name, files

    def _module(self, name: str, importer: Path) -> Iterator[Path]:
        """The files behind a dotted name, packages on the way among them."""
        first, *rest = name.split(".")
        if first in self._packages:
            folder = self._packages[first]
        else:
            near = self._nearest(first, importer)
            if near is None or near.name in _KEEPERS:
                return
            if near.name != "__init__.py":
                yield near
                return
            folder = near.parent
        yield from _package(folder)
        for part in rest:
            if (folder / part).is_dir():
                folder = folder / part
                yield from _package(folder)
            elif (folder / f"{part}.py").is_file():
                yield folder / f"{part}.py"
                return
            else:
                init = folder / "__init__.py"
                if init.is_file() and (home := self._used(init).get(part)):
                    yield from self._module(home, importer)
                return

    def _nearest(self, module: str, importer: Path) -> Path | None:
        """Of several modules of this name, the module beside the importer is imported."""
        candidates = self._modules.get(module, [])
        beside = [path for path in candidates if importer.parent in (path.parent, path.parents[1])]
        return next(iter([*beside, *candidates]), None)


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but docstrings and what only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=other):
                for each in other:
                    yield each
                    yield from _executed(each)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                yield node
                yield from _executed(node)


def _words(script: Path) -> set[str]:
    texts = (
        node.value
        for node in _executed(ast.parse(script.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {word for text in texts for word in text.split()}


def _names_loaded_on_use(init: Path) -> dict[str, str]:
    """Public name → module, from the imports that a package shows to type checkers alone."""
    homes = {}
    for node in ast.parse(init.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module:
                    homes |= {alias.asname or alias.name: each.module for alias in each.names}
    return homes


def _package(folder: Path) -> Iterator[Path]:
    """What importing a package reads: its own module, and its data."""
    for path in folder.iterdir():
        if path.is_file() and (
            path.name == "__init__.py" or path.suffix not in (".py", *_DOCUMENTS)
        ):
            yield path


def _hash(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha256(_code(content) if path.suffix == ".py" else content).hexdigest()


def _code(content: bytes) -> bytes:
    """The lines of a module without comments, docstrings and empty lines."""
    lines = content.splitlines()
    for node in ast.walk(ast.parse(content)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=start, end_lineno=int() as end):
                lines[start - 1 : end] = [b""] * (end - start + 1)
    for token in tokenize.tokenize(io.BytesIO(content).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            text = lines[row - 1].decode("utf-8")
            lines[row - 1] = text[:column].encode("utf-8")
    return b"\n".join(line.rstrip() for line in lines if line.strip())
