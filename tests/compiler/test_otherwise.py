"""`otherwise` on one requirement: which refusal follows which unmet check."""

from __future__ import annotations

import pytest
from test_settled import compiled, leaf

from sopilot.handbook.requirements import AnyOf, Constant, First, InOrder, Leaf, Tree
from sopilot.program.model import Act, Branch, Check, FailStep, Holds, Program, Some, Step


def own(tree: Tree, words: str) -> InOrder:
    return InOrder((tree,), words)


def refused_with(program: Program, unmet: set[str]) -> str | None:
    """What the refusal says where these predicates are false, ``None`` where nothing is refused."""
    steps = program.functions["goal"].steps
    place = {step.label: index for index, step in enumerate(steps)}
    index = 0
    while True:
        step: Step = steps[index]
        target: str | None = None
        if isinstance(step, Act):
            return None
        if isinstance(step, FailStep):
            return step.says.partition(": ")[2]
        if isinstance(step, Check):
            inside = [
                one.function
                for one in program.functions[step.function].steps
                if isinstance(one, Check)
            ]
            holds = not ({step.slot, *inside} & unmet)
            target = step.met if holds is step.wanted else step.unmet
        if isinstance(step, Branch):
            assert isinstance(step.when, Some)
            slots = [one.slot for one in step.when.conditions if isinstance(one, Holds)]
            target = step.then if set(slots) - unmet else step.otherwise
        index = index + 1 if target is None else place[target]


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
        assert refused_with(program, set(unmet)) == words, unmet


def test_one_step_for_one_refusal() -> None:
    program = compiled(InOrder((own(leaf("a"), "X"), own(leaf("b"), "X")))).program
    steps = program.functions["goal"].steps
    assert [str(step.says) for step in steps if isinstance(step, FailStep)] == ["tell the user: X"]


def test_what_refuses_in_its_own_way_stays_in_the_frame_of_the_goal() -> None:
    """A group could only return false; what need not stay is still moved out."""
    many = [Leaf(name, (("v", Constant(number)),)) for number in range(5) for name in "ab"]
    refusing = [own(one, f"X{number}") for number, one in enumerate(many)]
    plain = [Leaf("c", (("v", Constant(number)),)) for number in range(9)]
    heavy = own(InOrder(tuple(Leaf("d", (("v", Constant(number)),)) for number in range(6))), "Y")
    program = compiled(InOrder((*refusing, *plain, heavy))).program
    steps = program.functions["goal"].steps
    slots = [step.slot for step in steps if isinstance(step, Check)]
    assert len(slots) == 12  # ten that refuse, one group of the plain, one of the heavy
    for number, slot in enumerate(slots[:10]):
        assert refused_with(program, {slot}) == f"X{number}"
    assert [refused_with(program, {slot}) for slot in slots[10:]] == ["", "Y"]
