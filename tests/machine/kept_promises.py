"""What functions return while something runs, held against what they say that they return.

The type checker reads the source; this looks at the values: whoever promises a boolean returns
one, and no other thing that is as true, and whoever promises something returns something.
"""

from __future__ import annotations

import dis
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

RETURN = dis.opmap["RETURN_VALUE"]
MAYBE_NOTHING = ("None", "Any", "JSON", "object")


def broken_promises(run: Callable[[], object], *rooms: ModuleType) -> dict[str, str]:
    """Function → what it returned, of those that did not keep theirs."""
    promised = {code: says for room in rooms for code, says in _promises(room)}
    found: dict[str, str] = {}
    seen: set[CodeType] = set()

    def look(frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or (says := promised.get(frame.f_code)) is None:
            return
        code = frame.f_code
        if code.co_code[frame.f_lasti] != RETURN:
            return  # it was left by an exception
        seen.add(code)
        if value is None or (says == "bool" and type(value) is not bool):
            found[f"{code.co_filename}:{code.co_qualname}"] = repr(value)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(before)
    assert seen, "nothing was looked at"
    return found


def _promises(room: ModuleType) -> Iterator[tuple[CodeType, str]]:
    for one in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        module = import_module(one.name)
        for function in _functions(vars(module), module.__name__):
            says = str(function.__annotations__.get("return", "None"))
            if inspect.isgeneratorfunction(function) or any(one in says for one in MAYBE_NOTHING):
                continue
            yield function.__code__, says


def _functions(names: Any, module: str) -> Iterator[FunctionType]:
    for value in list(names.values()):
        value = value.fget if isinstance(value, property) else value
        value = getattr(value, "__func__", value)
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield value
        elif isinstance(value, type) and value.__module__ == module:
            yield from _functions(vars(value), module)
