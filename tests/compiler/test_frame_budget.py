"""No frame of any tree checks more than seven different things."""

from __future__ import annotations

import random

from random_trees import handbook_for, tree_of

from sopilot.compiler.factoring import LEAF_BUDGET
from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.requirements import AnyOf, InOrder, Leaf, Name, Tree
from sopilot.program.model import Check, Program


def widest(program: Program) -> int:
    """Different results that one frame can come to hold."""
    return max(
        len({step.slot for step in function.steps if isinstance(step, Check)})
        for function in program.functions.values()
    )


def options(start: int, count: int) -> Tree:
    names = [f"p{number}" for number in range(start, start + count)]
    return AnyOf(tuple(Leaf(name, (("v", Name("x")),)) for name in names))


def test_two_lists_that_fit_alone_but_not_together() -> None:
    tree = InOrder((options(0, 4), options(4, 4)))
    program = compile_procedure(handbook_for(tree, 8), "goal").program
    assert widest(program) == 5  # four of one list, and a call for the other
    assert "any_of_4_to_p3" in program.functions


def test_random_trees_stay_within_the_budget() -> None:
    reached = 0
    for seed in range(150):
        rng = random.Random(seed)
        tree = tree_of(rng, rng.choice((5, 8, 12, 20, 40)), 30)
        found = widest(compile_procedure(handbook_for(tree, 30), "goal").program)
        assert found <= LEAF_BUDGET, f"{found} checks in one frame, seed {seed}: {tree}"
        reached = max(reached, found)
    assert reached == LEAF_BUDGET
