"""The Python of a folder runs only after a person has trusted it, for exactly these bytes.

A hash over every source file is remembered. Modules are made from the hashed bytes; compiled files
beside them aren't read. Mistakes of that Python are reported by file, line and cure.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from sopilot.files.text import whole_bytes, write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import SopilotError, mistake
from sopilot.protocols import Tools, ToolSchema
from sopilot.stores.open import data_folder

_CODE = "bad-folder-code"
Answer = TypeVar("Answer")


@contextmanager
def own_code(file: Path, hook: str) -> Iterator[None]:
    """Report an exception of ``hook`` as a mistake of ``file``; a `SopilotError` stays as it is."""
    try:
        yield
    except SopilotError:
        raise
    except Exception as problem:  # the folder's code may raise anything
        message = f"`{hook}` raised {type(problem).__name__}: {problem}"
        raise mistake(_CODE, message, _place(file, problem), "correct it there") from problem


def call_hook(
    file: Path,
    hook: str,
    call: Callable[[], Answer],
    right: type | Callable[[object], bool],
    wanted: str,
) -> Answer:
    """Return the answer of ``hook``; report one that isn't ``right`` as a mistake of ``file``."""
    with own_code(file, hook):
        value = call()
        # Inside, because checking a protocol reads the properties of the answer.
        fits = isinstance(value, right) if isinstance(right, type) else right(value)
    if fits:
        return value
    problem = "gave nothing" if value is None else "gave something else"
    wanted = f"return {wanted}"
    if inspect.iscoroutine(value):
        value.close()  # else Python warns of it, too
        problem, wanted = "is `async def`, and must not be", f"write `def`, and {wanted}"
    raise mistake(_CODE, f"`{hook}` {problem}", Place(str(file)), wanted)


def checked_tools(file: Path, hook: str, tools: object) -> Tools:
    """The tools that ``hook`` returned, if their schemas can be listed."""

    def right(value: object) -> bool:
        schemas = value if isinstance(value, list | tuple) else (None,)
        return all(isinstance(item, ToolSchema) for item in schemas)

    wanted = "an object with `schemas()` and an async `call(name, arguments, *, key)`"
    known = call_hook(file, hook, lambda: tools, lambda value: isinstance(value, Tools), wanted)
    assert isinstance(known, Tools)
    wanted = "a list of `ToolSchema(name, description, …)`"
    call_hook(file, "schemas()", known.schemas, right, wanted)
    return known


def _place(file: Path, problem: Exception) -> Place:
    """The innermost line of the folder's own, else the file."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return Place(problem.filename, problem.lineno or 0, problem.offset or 0)
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if Path(frame.filename).is_relative_to(file.parent):
            return Place(frame.filename, frame.lineno or 0, (frame.colno or 0) + 1)
    return Place(str(file))


_FORMAT = "sopilot_trusted_folders"
_VERSION = 1
_for_now: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class FolderCode:
    """``files``: path below the folder → bytes."""

    folder: Path
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        spelled = [(name, hashlib.sha256(text).hexdigest()) for name, text in self.files.items()]
        return hashlib.sha256(json.dumps(sorted(spelled)).encode()).hexdigest()

    @property
    def trusted(self) -> bool:
        here = str(self.folder)
        return self.digest in (_for_now.get(here), _remembered().get(here))

    def trust_for_now(self) -> None:
        """Let the present files run in this process only."""
        _for_now[str(self.folder)] = self.digest

    def trust(self) -> None:
        """Let the present files run from now on."""
        known = {**_remembered(), str(self.folder): self.digest}
        text = json.dumps({_FORMAT: _VERSION, "folders": known}, indent=2, sort_keys=True)
        write_whole(_file(), text + "\n")

    def require_trust(self) -> None:
        if self.trusted:
            return
        changed = str(self.folder) in _remembered()
        what = "has changed since it was trusted" if changed else "was never trusted"
        raise mistake(
            "untrusted-code",
            f"the Python code of this folder would run with all your permissions, and {what}",
            Place(str(self.folder)),
            "read it, then add --trust; it is remembered until a file changes",
        )

    def module(self, name: str) -> ModuleType:
        """Import a module of the folder; it can import its neighbours."""
        self.require_trust()
        named = hashlib.sha256(f"{self.folder}\n{self.digest}".encode()).hexdigest()[:12]
        package = f"sopilot_folder_{named}"
        if package not in sys.modules:
            # An `__init__.py` is optional.
            root = ModuleType(package)
            root.__path__ = [str(self.folder)]
            sys.modules[package] = root
            sys.meta_path.insert(0, _Finder(package, self))
        return importlib.import_module(f"{package}.{name}")


def folder_code(folder: Path) -> FolderCode:
    try:
        files = {
            path.relative_to(folder).as_posix(): whole_bytes(path)
            for path in folder.rglob("*.py")
            if path.is_file()
        }
    except OSError as problem:
        message = f"its Python cannot be read: {problem.strerror}"
        raise mistake("unreadable-file", message, Place(str(folder))) from None
    return FolderCode(folder, files)


class _Finder(MetaPathFinder):
    def __init__(self, package: str, code: FolderCode) -> None:
        self._package = package
        self._code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != self._package or not rest:
            return None
        below = rest.replace(".", "/")
        place = str(self._code.folder / below)
        for name, inside in ((f"{below}/__init__.py", [place]), (f"{below}.py", None)):
            if name in self._code.files:
                file = str(self._code.folder / name)
                loader = _Loader(fullname, file, self._code.files[name])
                return spec_from_file_location(
                    fullname, file, loader=loader, submodule_search_locations=inside
                )
        if any(name.startswith(f"{below}/") for name in self._code.files):
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [place]
            return spec
        raise ModuleNotFoundError(f"{self._code.folder} has no {below}.py", name=fullname)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, text: bytes) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_data(self, path: str | bytes) -> bytes:
        return self._text

    def path_stats(self, path: str | bytes) -> Mapping[str, object]:
        # Without a time there is no compiled file, neither read nor written.
        raise OSError


def _file() -> Path:
    return data_folder() / "trusted-folders.json"


def _remembered() -> dict[str, str]:
    """The trusted digests by folder; empty if the file can't be read."""
    try:
        document = json.loads(whole_bytes(_file()))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or document.get(_FORMAT) != _VERSION:
        return {}
    folders = document.get("folders")
    return folders if isinstance(folders, dict) else {}
