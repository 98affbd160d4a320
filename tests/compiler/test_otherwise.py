"""`otherwise` on one requirement: which refusal follows which unmet check."""

from __future__ import annotations

import pytest
from abstract_executor import Executor, Key
from test_settled import compiled, leaf

from sopilot.handbook.requirements import AnyOf, Constant, First, InOrder, Leaf, Tree
from sopilot.program.model import Check, FailStep, Program


def own(tree: Tree, words: str) -> InOrder:
    return InOrder((tree,), words)


def refused_with(program: Program, *unmet: object) -> str | None:
    """What the refusal says where these predicates, or these keys, are false."""
    run = Executor(program).run(lambda key: key[0] not in unmet and key not in unmet)
    return None if run.refusal is None else run.refusal.partition(": ")[2]


def key_of(leaf: Leaf) -> Key:
    ((_, term),) = leaf.arguments
    assert isinstance(term, Constant)
    return leaf.predicate, (("v", term.value),)


CASES: list[tuple[Tree, dict[str, str | None]]] = [
    (InOrder((own(leaf("a"), "X"), leaf("b"))), {"": None, "a": "X", "b": "", "ab": "X"}),
    (InOrder((own(leaf("a"), "X"), own(leaf("b"), "Y"))), {"a": "X", "b": "Y", "ab": "X"}),
    # The innermost one says it.
    (own(InOrder((leaf("a"), own(leaf("b"), "Y"))), "X"), {"a": "X", "b": "Y"}),
    # `when b, then a`: refused only where the last option is unmet.
    (First((leaf("b", False), own(leaf("a"), "X"))), {"": None, "a": "X", "ab": None}),
    (own(AnyOf((leaf("a"), leaf("b"))), "X"), {"a": None, "b": None, "ab": "X"}),
    (InOrder((own(leaf("a"), "X"), own(leaf("b"), "X"))), {"a": "X", "b": "X"}),
]


@pytest.mark.parametrize(("tree", "expected"), CASES)
def test_the_refusal_is_that_of_the_requirement(
    tree: Tree, expected: dict[str, str | None]
) -> None:
    program = compiled(tree).program
    for unmet, words in expected.items():
        assert refused_with(program, *unmet) == words, unmet


def test_one_step_for_one_refusal() -> None:
    program = compiled(InOrder((own(leaf("a"), "X"), own(leaf("b"), "X")))).program
    steps = program.functions["goal"].steps
    assert [str(step.says) for step in steps if isinstance(step, FailStep)] == ["tell the user: X"]


def test_what_refuses_in_its_own_way_stays_in_the_frame_of_the_goal() -> None:
    """A group could only return false; what need not stay is still moved out."""
    many = [Leaf(name, (("v", Constant(number)),)) for number in range(5) for name in "ab"]
    refusing = [own(one, f"X{number}") for number, one in enumerate(many)]
    plain = [Leaf("c", (("v", Constant(number)),)) for number in range(9)]
    heavy = [Leaf("d", (("v", Constant(number)),)) for number in range(6)]
    tree = InOrder((*refusing, *plain, own(InOrder(tuple(heavy)), "Y")))
    program = compiled(tree).program
    checks = [step for step in program.functions["goal"].steps if isinstance(step, Check)]
    assert len(checks) == 12  # ten that refuse, one group of the plain, one of the heavy
    words = [f"X{number}" for number in range(10)] + [""] * 9 + ["Y"] * 6
    for one, expected in zip([*many, *plain, *heavy], words, strict=True):
        assert refused_with(program, key_of(one)) == expected, one
