"""Random handbooks, and their trees in the reference's own notation."""

from __future__ import annotations

import random

from reference_schedule import RefTree

from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import (
    All,
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Scalar,
    Term,
    Tree,
)

OPERATORS: dict[str, type] = {"and": All, "or": AnyOf, "chain": InOrder, "gate": First}
INPUTS = ("x", "y")


def random_tree(rng: random.Random, leaves: int, predicates: int, depth: int = 0) -> Tree:
    if leaves == 1 and (depth > 6 or rng.random() < 0.9):
        return random_leaf(rng, predicates)
    parts = 1 if leaves == 1 else rng.randint(1 if depth < 3 else 2, min(leaves, 9))
    cuts = sorted(rng.sample(range(1, leaves), parts - 1)) if parts > 1 else []
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, leaves], strict=True)]
    operator = OPERATORS[rng.choice(list(OPERATORS))]
    tree: Tree = operator(tuple(random_tree(rng, size, predicates, depth + 1) for size in sizes))
    return tree


def random_leaf(rng: random.Random, predicates: int) -> Leaf:
    name = f"p{rng.randrange(predicates)}"
    roll = rng.random()
    values: list[Scalar] = [1, "k"]
    term: Term = Name(rng.choice(INPUTS)) if roll < 0.8 else Constant(rng.choice(values))
    return Leaf(name, (("v", term),), rng.random() < 0.75)


def handbook_for(tree: Tree, predicates: int) -> Handbook:
    """A handbook whose predicates are each verified by one unguarded look-up."""
    inputs = tuple(Input(name) for name in INPUTS)
    actions = {"goal": Action("goal", inputs)}
    known = {}
    for number in range(predicates):
        look = f"look{number}"
        actions[look] = Action(look, (Input("v"),))
        known[f"p{number}"] = Predicate(
            f"p{number}",
            ("v",),
            says=f"P{number} of {{v}}.",
            recipes=((ActionCall(look, (("v", Name("v")),)),),),
        )
    return Handbook(
        "random",
        actions=actions,
        predicates=known,
        procedures={"goal": Procedure("goal", "goal", tree)},
    )


def as_reference(tree: Tree) -> RefTree:
    """The same tree as plain tuples, with the executor's placeholder values as arguments."""
    if isinstance(tree, Leaf):
        arguments = tuple(
            (parameter, f"<{term.name}>" if isinstance(term, Name) else term.value)
            for parameter, term in tree.arguments
        )
        return ("leaf", tree.predicate, arguments, tree.wanted)
    name = next(name for name, kind in OPERATORS.items() if type(tree) is kind)
    return (name, tuple(as_reference(child) for child in tree.children))
