"""Requirement trees, how a handbook writes them, and whether a simulator meets them.

The evaluator is this package's own: it knows nothing of programs, cursors or verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adversary.facts import Fact, truth_of
from adversary.recipes import Constant, written_term
from adversary.simulator import Simulator
from adversary.values import JSON, is_number

Name = str
Argument = Name | Constant


@dataclass(frozen=True)
class Leaf:
    fact: Fact
    terms: tuple[Argument, ...]


@dataclass(frozen=True)
class Group:
    """``operator`` is one of `all`, `in_order`, `any`, `first`; `when` over a condition and what
    it asks for; `otherwise` and `named` over one child that means what it means."""

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
    computed: bool = False
    """Whether the machine computes the amount: ten for every point of the user."""


Requirements = dict[str, JSON]
"""Named requirements of a handbook, by signature."""


def written_tree(tree: Tree, named: Requirements | None = None) -> JSON:
    """``named`` takes up what has a name; without it everything stands where it is used."""
    if isinstance(tree, Leaf):
        return f"{tree.fact.name}({', '.join(written_term(term) for term in tree.terms)})"
    if isinstance(tree, Not):
        return {"not": written_tree(tree.child, named)}
    written = [written_tree(child, named) for child in tree.children]
    if tree.operator == "when":
        return {"when": written[0], "then": written[1]}
    if tree.operator == "otherwise":
        return {"requires": written[0], "otherwise": "Something else follows."}
    if tree.operator == "named":
        return written[0] if named is None else _by_name(tree.children[0], named)
    return {tree.operator: written}


def _by_name(tree: Tree, named: Requirements) -> str:
    """Declared under other names than those that it is used with."""
    terms = [term for leaf in leaves_of(tree) for term in leaf.terms if isinstance(term, str)]
    inputs = [name for name in dict.fromkeys(terms) if name not in CONSTANTS]
    other = {name: f"it_{number}" for number, name in enumerate(inputs)}
    name = f"requirement_{len(named)}"
    named[f"{name}({', '.join(other.values())})"] = written_tree(renamed(tree, other), None)
    return f"{name}({', '.join(inputs)})"


CONSTANTS = frozenset({"largest", "circle"})


def renamed(tree: Tree, fixed: Mapping[str, Argument]) -> Tree:
    if isinstance(tree, Leaf):
        terms = (fixed.get(term, term) if isinstance(term, str) else term for term in tree.terms)
        return Leaf(tree.fact, tuple(terms))
    if isinstance(tree, Not):
        return Not(renamed(tree.child, fixed))
    return Group(tree.operator, tuple(renamed(child, fixed) for child in tree.children))


def leaves_of(tree: Tree) -> list[Leaf]:
    if isinstance(tree, Leaf):
        return [tree]
    if isinstance(tree, Not):
        return leaves_of(tree.child)
    return [leaf for child in tree.children for leaf in leaves_of(child)]


def operators_of(tree: Tree) -> set[str]:
    if isinstance(tree, Leaf):
        return set()
    if isinstance(tree, Not):
        return operators_of(tree.child)
    return {tree.operator}.union(*map(operators_of, tree.children))


Words = Mapping[tuple[str, str], bool | None]
"""What a model said last in a process, by predicate and values."""


def spoken(predicate: str, values: Sequence[JSON]) -> tuple[str, str]:
    """The key of a word: 5 and 5.0 are one value, 5 and "5" are two."""
    told = [float(value) if is_number(value) else value for value in values]
    return predicate, repr(told)


def truths_of(tree: Tree, sim: Simulator, values: Mapping[str, JSON]) -> list[bool | None]:
    """What the simulator shows of each leaf."""
    return [_truth(leaf, sim, values) for leaf in leaves_of(tree)]


def _truth(leaf: Leaf, sim: Simulator, values: Mapping[str, JSON]) -> bool | None:
    shown = tuple(t.value if isinstance(t, Constant) else values.get(t) for t in leaf.terms)
    asked = {name: values[name] for name in leaf.fact.asks if name in values}
    return truth_of(leaf.fact, sim, shown, asked)


def is_met(
    tree: Tree,
    sim: Simulator,
    values: Mapping[str, JSON],
    wanted: bool = True,
    words: Words | None = None,
) -> bool:
    """Whether the simulator shows the wanted side. What no record says is neither side. Where a
    model may judge, it must have said so of these values; without ``words`` it is taken to."""
    if isinstance(tree, Leaf):
        if tree.fact.judged == "nobody":
            return False
        if tree.fact.judged == "model":
            shown = [t.value if isinstance(t, Constant) else values.get(t) for t in tree.terms]
            return words is None or words.get(spoken(tree.fact.name, shown)) is wanted
        return _truth(tree, sim, values) is wanted
    if isinstance(tree, Not):
        return is_met(tree.child, sim, values, not wanted, words)
    if tree.operator == "when":
        condition, then = tree.children
        either = (
            is_met(condition, sim, values, not wanted, words),
            is_met(then, sim, values, wanted, words),
        )
        return any(either) if wanted else all(either)
    met = (is_met(child, sim, values, wanted, words) for child in tree.children)
    conjunction = tree.operator in ("all", "in_order", "otherwise", "named")
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
