"""The code that decides how a run goes, as one hash: the version alone tells too little.

It covers the contents of files, not their places: of an import from this project the names and not
the module, of a file that only passes names on nothing. So a file can move, and its users can
follow it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
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
    """Where each file lies, for people, and the hash of what it holds."""

    files: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        held = "\n".join(sorted(self.files.values()))
        return hashlib.sha256(held.encode()).hexdigest()


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
    held = {
        name: _held(path.read_bytes()) if path.suffix == ".py" else path.read_bytes()
        for name, path in sorted(files.items())
        if not name.startswith(_AFTERWARDS)
    }
    return Sources({name: hashlib.sha256(text).hexdigest() for name, text in held.items() if text})


def describe_difference(then: Sources, now: Sources) -> str:
    """Which files differ; a file that moved does not."""
    known, here = set(then.files.values()), set(now.files.values())
    other = {name for name, held in now.files.items() if held not in known}
    lost = {name for name, held in then.files.items() if held not in here}
    parts = {"changed": other & lost, "new": other - lost, "gone": lost - other}
    messages = [f"{word} {_named(sorted(names))}" for word, names in parts.items() if names]
    return "; ".join(messages) or "a file more or less of the same content"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    rest = len(names) - _MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown


@functools.cache
def _held(content: bytes) -> bytes:
    try:
        module = ast.parse(content)
    except SyntaxError:
        return content
    if all(_passes_on(statement) for statement in module.body):
        return b""
    lines = content.decode().splitlines()
    names: list[str] = []
    for node in _statements(module.body):
        if isinstance(node, ast.ImportFrom) and _is_ours(node):
            names += [ast.unparse(each) for each in node.names]
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    stored = [line for line in lines if line]
    return "\n".join([*sorted(names), *stored]).encode()


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Imports are nothing else, wherever they stand; expressions are most of a tree."""
    for item in body:
        yield item
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(item, field, ()))
        for part in (*getattr(item, "handlers", ()), *getattr(item, "cases", ())):
            yield from _statements(part.body)


def _is_ours(node: ast.ImportFrom) -> bool:
    return node.level > 0 or (node.module or "").split(".")[0] in ("sopilot", "sopilot_lab")


def _passes_on(statement: ast.stmt) -> bool:
    """A docstring, an import, the list of names: a front that has nothing of its own."""
    match statement:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False
