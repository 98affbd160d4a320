"""What a room takes for granted: its limits, words and tables, and the defaults of its functions.

Nobody who calls a function without an argument sees what is taken instead. A limit or a default
that changes does so on purpose, and shows in this listing.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

_PLAIN = (bool, int, float, str, type(None))


def listing(modules: Mapping[str, ModuleType]) -> Iterator[str]:
    for name, module in sorted(modules.items()):
        for constant in _own_names(module):
            if constant in vars(module) and (told := _told(vars(module)[constant])):
                yield f"{name}.{constant} = {told}"
        for one in vars(module).values():
            if getattr(one, "__module__", None) != name:
                continue
            if inspect.isclass(one):
                if dataclasses.is_dataclass(one) or hasattr(one, "_field_defaults"):
                    yield from _defaults(f"{name}.{one.__name__}", one)
                for inner, member in vars(one).items():
                    function = getattr(member, "__func__", member)
                    if inspect.isfunction(function) and not inner.startswith("__"):
                        yield from _defaults(f"{name}.{one.__name__}.{inner}", function)
            elif inspect.isfunction(one):
                yield from _defaults(f"{name}.{one.__name__}", one)


def _own_names(module: ModuleType) -> Iterator[str]:
    for node in ast.parse(inspect.getsource(module)).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (one.id for one in parts if isinstance(one, ast.Name) and one.id.isupper())


def _defaults(name: str, function: Any) -> Iterator[str]:
    for one in inspect.signature(function).parameters.values():
        if one.default is not one.empty and (told := _told(one.default)):
            yield f"{name}({one.name}={told})"


def _told(value: Any) -> str:
    """As it is written; nothing for what has no words of its own."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"re {value.pattern!r} {value.flags}"
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(sorted(map(_told, value))) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(_told, value)) + ")"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_told(key)}: {_told(one)}" for key, one in value.items()) + "}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = vars(value) if hasattr(value, "__dict__") else dataclasses.asdict(value)
        return f"{type(value).__name__}{_told(given)}"
    return ""


def as_written(modules: Mapping[str, ModuleType], file: Path) -> None:
    found = list(listing(modules))
    if os.environ.get("SOPILOT_REGOLD"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(found) + "\n", "utf-8")
    assert found == file.read_text("utf-8").splitlines()
