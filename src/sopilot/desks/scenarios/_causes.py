"""What a refusal rests on: the predicates that make the requirement false.

A false option of an ``any`` whose other option holds is no cause, however often
the trace mentions it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sopilot.language.handbook import (
    AnyOf,
    Constant,
    First,
    Handbook,
    Leaf,
    Tree,
    leaves,
    obligations,
)
from sopilot.language.program.model import Kind, Program
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Event, Process, agree


@dataclass(frozen=True, slots=True)
class JudgedPredicate:
    """A predicate as the run judged it."""

    predicate: str
    values: Mapping[str, JSON]
    holds: bool


def refusal_causes(
    handbook: Handbook, program: Program, process: Process, events: Sequence[Event]
) -> tuple[str, ...]:
    """The predicates to blame for the failure of ``process``, each once."""
    observed = list(_observations(program, events, process.id))
    tree = obligations(handbook, handbook.procedures[process.goal])
    known = {**process.arguments, **process.known}
    _, blamed = _blame(tree, observed, known)
    found = dict.fromkeys(leaf.predicate for leaf in blamed)
    in_tree = {leaf.predicate for leaf in leaves(tree)}
    gates = {one.predicate for one in program.functions.values() if one.kind is Kind.GATE} - in_tree
    for one in observed:
        if one.predicate in gates and not one.holds:
            found.setdefault(one.predicate)
    return tuple(found)


def _observations(
    program: Program, events: Sequence[Event], process: str
) -> Iterator[JudgedPredicate]:
    opened: dict[int, Mapping[str, JSON]] = {}
    for event in events:
        if event.process != process:
            continue
        if event.kind == "call":
            opened[event.seq] = event.payload["resolved"]
        elif event.kind == "return":
            function = program.functions[event.payload["function"]]
            if function.predicate is not None:
                values = {
                    **opened.get(event.payload["opened"], {}),
                    **event.payload.get("learned", {}),
                }
                yield JudgedPredicate(function.predicate, values, event.payload["bound"]["holds"])


def _blame(
    tree: Tree, observed: Sequence[JudgedPredicate], known: Mapping[str, JSON]
) -> tuple[bool | None, tuple[Leaf, ...]]:
    """The tree's truth as far as it was looked at, and the leaves that make it false."""
    if isinstance(tree, Leaf):
        holds = _seen(tree, observed, known)
        if holds is None:
            return None, ()
        met = holds == tree.wanted
        return met, () if met else (tree,)
    parts = [_blame(child, observed, known) for child in tree.children]
    values = [value for value, _ in parts]
    blamed = tuple(leaf for value, found in parts if value is False for leaf in found)
    if isinstance(tree, AnyOf | First):
        if True in values:
            return True, ()
        return (None, ()) if None in values else (False, blamed)
    if False in values:
        return False, blamed
    return (None if None in values else True), ()


def _seen(
    leaf: Leaf, observed: Sequence[JudgedPredicate], known: Mapping[str, JSON]
) -> bool | None:
    for one in reversed(observed):
        if one.predicate == leaf.predicate and _same(leaf, one.values, known):
            return one.holds
    return None


def _same(leaf: Leaf, values: Mapping[str, JSON], known: Mapping[str, JSON]) -> bool:
    value: JSON
    for parameter, term in leaf.arguments:
        if isinstance(term, Constant):
            value = term.value
        elif term.name in known:
            value = known[term.name]
        else:
            continue  # nobody ever knew it, so nothing can contradict it
        if not agree(values.get(parameter), value):
            return False
    return True
