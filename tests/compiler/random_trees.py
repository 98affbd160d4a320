"""Handbooks of one random tree, and the tree in the reference's own notation."""

from __future__ import annotations

import random

from random_handbooks import random_tree
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
    Tree,
)

NAMES = {"and": All, "or": AnyOf, "chain": InOrder, "gate": First}
INPUTS = ("x", "y")


def tree_of(rng: random.Random, leaves: int, predicates: int) -> Tree:
    values: list[Scalar] = [1, "k"]

    def leaf() -> Leaf:
        term = Name(rng.choice(INPUTS)) if rng.random() < 0.8 else Constant(rng.choice(values))
        return Leaf(f"p{rng.randrange(predicates)}", (("v", term),), rng.random() < 0.75)

    return random_tree(rng, leaves, leaf)


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
    name = next(name for name, kind in NAMES.items() if type(tree) is kind)
    return (name, tuple(as_reference(child) for child in tree.children))
