"""Requirement trees, how a handbook writes them, and whether a world meets them.

The evaluator is this package's own: it knows nothing of programs, cursors or verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adversary.catalogue import Fact, truth_of
from adversary.recipes import Constant, written_term
from adversary.values import JSON, is_number
from adversary.world import World

Name = str
Argument = Name | Constant


@dataclass(frozen=True)
class Leaf:
    fact: Fact
    terms: tuple[Argument, ...]


@dataclass(frozen=True)
class Group:
    """``operator`` is one of `all`, `in_order`, `any`, `first`."""

    operator: str
    children: tuple[Tree, ...]


@dataclass(frozen=True)
class Not:
    child: Tree


Tree = Leaf | Group | Not


@dataclass(frozen=True)
class Procedure:
    """``fixed`` binds inputs of the action to a constant or to another name."""

    name: str
    action: str
    requires: Tree
    fixed: Mapping[str, Argument] = field(default_factory=dict)


def written_tree(tree: Tree) -> JSON:
    if isinstance(tree, Leaf):
        return f"{tree.fact.name}({', '.join(written_term(term) for term in tree.terms)})"
    if isinstance(tree, Not):
        return {"not": written_tree(tree.child)}
    return {tree.operator: [written_tree(child) for child in tree.children]}


def leaves_of(tree: Tree) -> list[Leaf]:
    if isinstance(tree, Leaf):
        return [tree]
    if isinstance(tree, Not):
        return leaves_of(tree.child)
    return [leaf for child in tree.children for leaf in leaves_of(child)]


Words = Mapping[tuple[str, str], bool | None]
"""What a model said last in a process, by predicate and values."""


def spoken(predicate: str, values: Sequence[JSON]) -> tuple[str, str]:
    """The key of a word: 5 and 5.0 are one value, 5 and "5" are two."""
    told = [float(value) if is_number(value) else value for value in values]
    return predicate, repr(told)


def is_met(
    tree: Tree,
    world: World,
    values: Mapping[str, JSON],
    wanted: bool = True,
    words: Words | None = None,
) -> bool:
    """Whether the world shows the wanted side. What no record says is neither side. Where a
    model may judge, it must have said so of these values; without ``words`` it is taken to."""
    if isinstance(tree, Leaf):
        fact = tree.fact
        given = tuple(
            term.value if isinstance(term, Constant) else values.get(term) for term in tree.terms
        )
        if fact.judged == "model":
            return words is None or words.get(spoken(fact.name, given)) is wanted
        if fact.judged == "nobody":
            return False
        asked = {name: values[name] for name in fact.asks if name in values}
        return truth_of(fact, world, given, asked) is wanted
    if isinstance(tree, Not):
        return is_met(tree.child, world, values, not wanted, words)
    met = (is_met(child, world, values, wanted, words) for child in tree.children)
    conjunction = tree.operator in ("all", "in_order")
    return all(met) if conjunction is wanted else any(met)


def procedure_values(procedure: Procedure, arguments: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """The procedure's names with the act's values; ``None`` when a fixed input is another."""
    values = dict(arguments)
    for name, term in procedure.fixed.items():
        given = values.pop(name, None)
        if isinstance(term, Constant):
            if not _alike(given, term.value):
                return None
        elif term in values and term not in arguments and not _alike(values[term], given):
            return None  # one name, two values
        else:
            values[term] = given
    return values


def _alike(one: JSON, other: JSON) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
