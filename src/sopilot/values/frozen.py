"""How values are made: frozen dataclasses with slots, whose fields are set directly.

What ``dataclass`` writes for a frozen class looks up every field by its name while it sets it,
which is most of what making a value costs. A machine's step and a program's compilation make
thousands; so these set their slots. Nothing else differs.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: _Class) -> _Class:
    """``@dataclass(frozen=True, slots=True)``; a class that compares by its own ``__eq__`` keeps
    it, and its ``__hash__``."""
    own = "__eq__" in vars(made)
    built: Any = dataclass(frozen=True, slots=True, eq=not own)(made)
    built.__init__ = _initialiser(built)
    if hasattr(built, "__post_init__"):
        # A copy is made as its original was: what it derives then is no field of it.
        built.__reduce__ = _made_again
    slotted: _Class = built
    return slotted


def _made_again(value: Any) -> tuple[type, tuple[object, ...]]:
    return type(value), tuple([getattr(value, item.name) for item in fields(value)])


def _initialiser(made: type) -> Any:
    known: dict[str, Any] = {"_MISSING": MISSING}
    texts: list[str] = []
    sets: list[str] = []
    for item in fields(made):
        known[f"_set_{item.name}"] = vars(made)[item.name].__set__
        texts.append(item.name + _default(item, known))
        value = item.name
        if item.default_factory is not MISSING:
            value = f"_make_{item.name}() if {value} is _MISSING else {value}"
        sets.append(f"_set_{item.name}(self, {value})")
    if hasattr(made, "__post_init__"):
        sets.append("self.__post_init__()")
    body = "".join(f"    {line}\n" for line in sets or ["pass"])
    # As `dataclass` itself does it; nothing here comes from outside of the class statement.
    exec(f"def __init__(self, {', '.join(texts)}):\n{body}", known)  # noqa: S102
    initialiser = known["__init__"]
    initialiser.__qualname__ = f"{made.__qualname__}.__init__"
    initialiser.__annotations__ = {entry.name: entry.type for entry in fields(made)} | {
        "return": None
    }
    return initialiser


def _default(item: Field[Any], known: dict[str, Any]) -> str:
    if item.default is not MISSING:
        known[f"_default_{item.name}"] = item.default
        return f"=_default_{item.name}"
    if item.default_factory is not MISSING:
        known[f"_make_{item.name}"] = item.default_factory
        return "=_MISSING"
    return ""
