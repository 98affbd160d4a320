"""SOPBench's own notation of trees and recipes, read into the handbook's objects.

Upstream writes ``["and", […]]``, ``["chain", […]]``, ``["or", […]]``,
``["gate", […]]`` and ``["single", "not predicate", {parameter: name}]``;
``null`` is the tree that asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sopilot.language.diagnostics import UserMistake
from sopilot.language.handbook import (
    NOTHING,
    ActionCall,
    All,
    AnyOf,
    Binding,
    First,
    InOrder,
    Leaf,
    Name,
    Recipe,
    Tree,
)

_NEGATION = "not "
_SHAPES: Mapping[str, type[All | InOrder | AnyOf | First]] = {
    "and": All,
    "chain": InOrder,
    "or": AnyOf,
    "gate": First,
}


def singles(dependency: Any) -> Iterator[Sequence[Any]]:
    """The leaves as upstream writes them, in source order."""
    if not dependency:
        return
    if dependency[0] == "single":
        yield dependency
        return
    for part in dependency[1]:
        yield from singles(part)


def predicate_name(single: Sequence[Any]) -> str:
    return str(single[1]).removeprefix(_NEGATION)


def read_tree(dependency: Any, parameters: Mapping[str, Sequence[str]]) -> Tree:
    """``parameters`` gives each predicate's parameters in their declared order."""
    if not dependency:
        return NOTHING
    shape = dependency[0]
    if shape == "single":
        name = predicate_name(dependency)
        wanted = not str(dependency[1]).startswith(_NEGATION)
        return Leaf(name, read_binding(dependency[2], parameters.get(name, ())), wanted)
    if shape not in _SHAPES:
        raise UserMistake(f"SOPBench uses an unknown operator `{shape}`")
    return _SHAPES[shape](tuple(read_tree(part, parameters) for part in dependency[1]))


def read_binding(mapping: Mapping[str, str] | None, order: Sequence[str]) -> Binding:
    """Parameter → name, declared parameters first in their order."""
    given = mapping or {}
    for term in given.values():
        if term.startswith("value "):  # upstream evaluates these as code; none is in the data
            raise UserMistake(f"SOPBench writes a constant as code: `{term}`")
    keys = [key for key in order if key in given]
    keys += [key for key in given if key not in order]
    return tuple((key, Name(given[key])) for key in keys)


def read_recipes(process: Any, inputs: Mapping[str, Sequence[str]]) -> tuple[Recipe, ...]:
    """Disjunctive normal form: every alternative as the calls that it needs, in order."""
    if process[0] == "single":
        return ((ActionCall(process[1], read_binding(process[2], inputs.get(process[1], ()))),),)
    parts = [read_recipes(part, inputs) for part in process[1]]
    if process[0] in ("or", "gate"):
        return tuple(dict.fromkeys(recipe for part in parts for recipe in part))
    combined: list[Recipe] = [()]
    for part in parts:
        combined = [tuple(dict.fromkeys(done + more)) for done in combined for more in part]
    return tuple(dict.fromkeys(combined))
