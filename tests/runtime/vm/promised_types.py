"""Whether functions return what they say they do: a truth is true or false, and never nothing.

Python runs the annotations past nobody. Who takes nothing for false gets by, until somebody asks
with `is`, or writes it down.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType, UnionType
from typing import Any

_RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap}
_ABSTRACT = {"Sequence": (list, tuple), "float": (float, int)}
Promised = tuple[type, ...]


def promised_by(modules: Mapping[str, ModuleType]) -> dict[CodeType, Promised]:
    """By the code of every function in them whose annotation names types that can be told."""
    found: dict[CodeType, Promised] = {}
    for module in modules.values():
        for function in _functions(module):
            written = function.__annotations__.get("return")
            if isinstance(written, str) and not inspect.isgeneratorfunction(function):
                types = _types(ast.parse(written, mode="eval").body, module)
                if types:
                    found[function.__code__] = types
    return found


def _functions(module: ModuleType) -> Iterator[Any]:
    for one in vars(module).values():
        if getattr(one, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(one):
            yield one
        elif inspect.isclass(one):
            for inner in vars(one).values():
                member = inner.fget if isinstance(inner, property) else inner
                member = getattr(member, "__func__", member)
                if inspect.isfunction(member) and member.__module__ == module.__name__:
                    yield member


def _types(written: ast.expr, module: ModuleType) -> Promised:
    """Those of an annotation; empty where it says something else than types."""
    match written:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            both = _types(left, module), _types(right, module)
            return both[0] + both[1] if all(both) else ()
        case ast.Subscript(value=value):
            return _types(value, module)
        case ast.Constant(value=None):
            return (type(None),)
        case ast.Name(id=name):
            if name in _ABSTRACT:
                return _ABSTRACT[name]
            one = getattr(module, name, None) or getattr(sys.modules["builtins"], name, None)
            if isinstance(one, UnionType):
                return tuple(one.__args__) if all(map(_can_be_told, one.__args__)) else ()
            return (one,) if _can_be_told(one) else ()
    return ()


def _can_be_told(one: Any) -> bool:
    return inspect.isclass(one) and one not in (object, Any) and not _is_protocol(one)


def _is_protocol(one: Any) -> bool:
    return getattr(one, "_is_protocol", False) is True


@contextmanager
def held_to(promised: Mapping[CodeType, Promised]) -> Iterator[dict[str, str]]:
    """While it lasts; what was promised by whom and is not what came back."""
    broken: dict[str, str] = {}

    def seen(frame: FrameType, event: str, value: Any) -> None:
        if event != "return":
            return
        code = frame.f_code
        types = promised.get(code)
        # What is yielded or awaited, and what is raised, passes here as well.
        if types is None or code.co_code[frame.f_lasti] not in _RETURNS:
            return
        exact = types in ((bool,), (int,))
        if not (type(value) in types if exact else isinstance(value, types)):
            broken[code.co_qualname] = f"{value!r} is none of {[one.__name__ for one in types]}"

    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(seen)
    try:
        yield broken
    finally:
        sys.setprofile(before)
