"""Proposition 1, executed: compiled programs mean and schedule what the tree says."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from abstract_executor import Executor, Key
from random_handbooks import OPERATORS
from random_trees import as_reference, handbook_for, tree_of
from reference_schedule import leaf_set, truth, walk

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.requirements import Leaf, Name, Tree


def check_case(tree: Tree, predicates: int, values: dict[Key, bool] | random.Random) -> None:
    """Compile one tree and compare one run (or all given values) with the reference."""
    program = compile_procedure(handbook_for(tree, predicates), "goal").program
    reference = as_reference(tree)
    keys = sorted({(p, a) for p, a, _ in leaf_set(reference)}, key=repr)
    if isinstance(values, random.Random):
        values = {key: values.random() < 0.6 for key in keys}
    compare(Executor(program), reference, values)


def compare(executor: Executor, reference: tuple[object, ...], values: dict[Key, bool]) -> None:
    run = executor.run(values.__getitem__)
    seen: list[Key] = []
    walked = walk(reference, values.__getitem__, seen)
    meaning = truth(reference, values.__getitem__)
    assert walked == meaning, "the reference disagrees with itself"
    # Truth, and the goal action iff it holds.
    assert run.accepted == meaning
    assert ("goal" in run.acted) == meaning
    assert run.acted.count("goal") <= 1
    # The schedule: chain order, every `or` option, `gate` short-circuit, no invention,
    # modulo reuse (so repeats are folded on both sides).
    assert list(dict.fromkeys(run.judged)) == list(dict.fromkeys(seen))


def random_cases(count: int, seed: int) -> None:
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        leaves = rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 40))
        predicates = rng.choice((1, 2, 4, 8, 20))
        tree = tree_of(rng, leaves, predicates)
        try:
            check_case(tree, predicates, rng)
        except AssertionError as error:
            raise AssertionError(f"case {number} of seed {seed}: {tree}") from error


def test_random_trees() -> None:
    random_cases(2_500, seed=1)


def shapes(leaves: int) -> Iterator[Tree | None]:
    """Every operator tree with that many leaf positions (``None`` marks a leaf)."""
    if leaves == 1:
        yield None
        return
    for parts in compositions(leaves):
        for children in itertools.product(*(list(shapes(part)) for part in parts)):
            for operator in OPERATORS:
                yield operator(children)


def compositions(total: int) -> Iterator[tuple[int, ...]]:
    for cuts in itertools.chain.from_iterable(
        itertools.combinations(range(1, total), r) for r in range(1, total)
    ):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, total), strict=True))


def growth_strings(length: int) -> Iterator[tuple[int, ...]]:
    """Which leaves share a predicate: each partition once."""
    if length == 0:
        yield ()
        return
    for start in growth_strings(length - 1):
        for value in range(max(start, default=-1) + 2):
            yield (*start, value)


def fill(shape: Tree | None, leaves: Iterator[Leaf]) -> Tree:
    if shape is None:
        return next(leaves)
    assert not isinstance(shape, Leaf)
    filled: Tree = type(shape)(tuple(fill(child, leaves) for child in shape.children))
    return filled


def exhaust(leaves: int) -> int:
    cases = 0
    for shape in shapes(leaves):
        for labels in growth_strings(leaves):
            for wanted in itertools.product((True, False), repeat=leaves):
                tree = fill(
                    shape,
                    iter(
                        [
                            Leaf(f"p{label}", (("v", Name("x")),), polarity)
                            for label, polarity in zip(labels, wanted, strict=True)
                        ]
                    ),
                )
                predicates = max(labels) + 1
                program = compile_procedure(handbook_for(tree, predicates), "goal").program
                executor = Executor(program)
                reference = as_reference(tree)
                for verdicts in itertools.product((True, False), repeat=predicates):
                    values: dict[Key, bool] = {
                        (f"p{i}", (("v", "<x>"),)): value for i, value in enumerate(verdicts)
                    }
                    compare(executor, reference, values)
                    cases += 1
    return cases


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_every_small_tree(leaves: int) -> None:
    assert exhaust(leaves) > 0
