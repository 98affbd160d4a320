"""Requirement trees: predicates that must hold, their operators and schedule.

``All``, ``AnyOf``, ``InOrder`` and ``First`` are the paper's ``and``, ``or``, ``chain`` and
``gate``. Negation lives on the leaf: a leaf is a literal (predicate, arguments, wanted truth).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import is_

from sopilot.values.json import JSON

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A value that is known under this name where the tree stands."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value. ``1``, ``1.0`` and ``true`` are three values, as they are three texts."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Path:
    """A place in an earlier answer of the same recipe, or in the element of its ``for_each``.

    ``root`` is the call's name or the element's, ``steps`` are keys and positions.
    """

    root: str
    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(
            f".{step}" if isinstance(step, str) else f"[{step}]" for step in self.steps
        )


Term = Name | Constant

Origin = Name | Constant | Path
"""Where an argument of a recipe's call comes from."""

Binding = tuple[tuple[str, Term], ...]
"""Parameter → term, in the declared order of the parameters."""

CallBinding = tuple[tuple[str, Origin], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """``question`` spells the predicate and its arguments; a leaf and its negation have the same
    one. ``key`` spells the leaf itself."""

    predicate: str
    arguments: Binding = ()
    wanted: bool = True
    question: str = field(init=False, repr=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        requests = [
            f"{parameter!r}: {term.name!r}"
            if isinstance(term, Name)
            else f"{parameter!r} = {term.value!r}"
            for parameter, term in self.arguments
        ]
        question = f"{self.predicate!r}({', '.join(requests)})"
        object.__setattr__(self, "question", question)
        object.__setattr__(self, "key", question if self.wanted else f"not {question}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        """The leaf for people: ``not owns(user, 'flat')``."""
        arguments = ", ".join(
            term.name if isinstance(term, Name) else repr(term.value) for _, term in self.arguments
        )
        return f"{'' if self.wanted else 'not '}{self.predicate}({arguments})"


@dataclass(frozen=True, slots=True)
class All:
    """Every child must hold; their order is free."""

    children: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class InOrder:
    """Every child must hold, and they are checked in this order. ``otherwise`` follows a refusal
    for one of them: another procedure, or a text."""

    children: tuple[Tree, ...]
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One child must hold; every child is evaluated before that is decided."""

    children: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class First:
    """One child must hold; they are tried in order up to the first success."""

    children: tuple[Tree, ...]


Tree = Leaf | All | InOrder | AnyOf | First
NOTHING = All(())
OPERATORS: dict[type, str] = {All: "all", AnyOf: "any", InOrder: "in_order", First: "first"}
_DUAL: dict[type, type] = {All: AnyOf, AnyOf: All, InOrder: First, First: InOrder}


def negate(tree: Tree) -> Tree:
    """De Morgan. An ordered conjunction stops at its first failure, so its dual is ``First``."""
    if isinstance(tree, Leaf):
        return Leaf(tree.predicate, tree.arguments, not tree.wanted)
    dual: Tree = _DUAL[type(tree)](tuple(negate(child) for child in tree.children))
    return dual


def with_children(tree: All | AnyOf | InOrder | First, children: tuple[Tree, ...]) -> Tree:
    """The same operator over others; the tree itself where nothing has changed."""
    if len(children) == len(tree.children) and all(map(is_, children, tree.children)):
        return tree
    if isinstance(tree, InOrder):
        return InOrder(children, tree.otherwise)
    rebuilt: Tree = type(tree)(children)
    return rebuilt


def otherwise_of(tree: Tree) -> str:
    """The text or procedure that follows a refusal for this part, if the part has its own."""
    return tree.otherwise if isinstance(tree, InOrder) else ""


def without_otherwise(tree: Tree) -> Tree:
    """The requirement without its own ``otherwise``."""
    if isinstance(tree, InOrder) and tree.otherwise:
        return tree.children[0] if len(tree.children) == 1 else InOrder(tree.children)
    return tree


def every_otherwise(tree: Tree) -> list[str]:
    """Every ``otherwise`` of the tree, each once."""
    if isinstance(tree, Leaf):
        return []
    own = [otherwise_of(tree)] if otherwise_of(tree) else []
    below = (item for child in tree.children for item in every_otherwise(child))
    return list(dict.fromkeys([*own, *below]))


def leaves(tree: Tree) -> list[Leaf]:
    """Every leaf in source order, repeats included."""
    if isinstance(tree, Leaf):
        return [tree]
    leafs: list[Leaf] = []
    for child in tree.children:
        if isinstance(child, Leaf):
            leafs.append(child)
        else:
            leafs += leaves(child)
    return leafs


def names_in(tree: Tree) -> tuple[str, ...]:
    """The names a tree needs a value for, each once, in order of first use."""
    seen: dict[str, None] = {}
    for leaf in leaves(tree):
        for _, term in leaf.arguments:
            if isinstance(term, Name):
                seen[term.name] = None
    return tuple(seen)


def plain_binding(binding: CallBinding) -> Binding:
    """The binding outside of its recipe, where a place in an answer is just a name."""
    return tuple(
        (parameter, Name("_".join(map(str, (term.root, *term.steps)))))
        if isinstance(term, Path)
        else (parameter, term)
        for parameter, term in binding
    )


def values_of(binding: Binding, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The parameters with their values, as far as their names have any."""
    return {
        parameter: term.value if isinstance(term, Constant) else values[term.name]
        for parameter, term in binding
        if isinstance(term, Constant) or term.name in values
    }


def substitute_binding(binding: Binding, values: Mapping[str, Term]) -> Binding:
    return tuple(
        (parameter, values.get(term.name, term) if isinstance(term, Name) else term)
        for parameter, term in binding
    )


def substitute(tree: Tree, values: Mapping[str, Term]) -> Tree:
    """The tree with its names replaced; a name without a replacement stays."""
    if isinstance(tree, Leaf):
        return Leaf(tree.predicate, substitute_binding(tree.arguments, values), tree.wanted)
    return with_children(tree, tuple(substitute(child, values) for child in tree.children))


Verdicts = Callable[[str, Binding], bool]
"""The observed truth of a predicate under a binding."""


def meaning(tree: Tree, verdicts: Verdicts) -> bool:
    if isinstance(tree, Leaf):
        return verdicts(tree.predicate, tree.arguments) == tree.wanted
    values = [meaning(child, verdicts) for child in tree.children]
    return any(values) if isinstance(tree, AnyOf | First) else all(values)
