"""Code in which no check stands twice on a path asks the same and comes to the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

from test_settled import compiled, leaf

from sopilot.compiler.threading import thread
from sopilot.handbook.requirements import First, InOrder, Tree
from sopilot.program.model import Act, Branch, Check, CompleteStep, FailStep, Holds, Program, Step

Answers = Mapping[str, bool | None]


def walked(steps: tuple[Step, ...], answers: Answers) -> tuple[list[str], type]:
    """What is asked, in order, and how it ends; an undecided result is what nobody wanted."""
    place = {step.label: index for index, step in enumerate(steps)}
    asked: dict[str, None] = {}
    index = 0
    while True:
        step = steps[index]
        target: str | None = None
        if isinstance(step, Check):
            asked.setdefault(step.slot)
            target = step.met if answers[step.slot] is step.wanted else step.unmet
        elif isinstance(step, Branch):
            assert isinstance(step.when, Holds)
            holds = answers[step.when.slot] is step.when.wanted
            target = step.then if holds else step.otherwise
        elif isinstance(step, CompleteStep | FailStep):
            return list(asked), type(step)
        index = index + 1 if target is None else place[target]


def random_code(rng: random.Random) -> tuple[Step, ...]:
    """Checks that jump down the listing as they like, over a few results."""
    count = rng.randint(2, 9)
    slots = "abcd"[: rng.randint(1, 4)]
    ends = ["act", "refuse"]
    steps: list[Step] = []
    for index in range(count):
        ahead = [None, *(f"s{later}" for later in range(index + 1, count)), *ends]
        if steps and rng.random() < 0.2 and isinstance(steps[0], Check):
            when = Holds(steps[0].slot, rng.random() < 0.5)
            then, otherwise = rng.choice(ahead[1:]), rng.choice(ahead[1:])
            assert then is not None
            assert otherwise is not None
            steps.append(Branch(f"s{index}", when, then, otherwise))
            continue
        slot = rng.choice(slots)
        met, unmet = rng.choice(ahead[:3]), rng.choice(ahead)
        steps.append(Check(f"s{index}", slot, (), slot, rng.random() < 0.7, met, unmet))
    return (*steps, Act("act", "goal", goal=True), CompleteStep("done"), FailStep("refuse"))


def paths(steps: tuple[Step, ...], index: int = 0) -> Iterator[list[Check]]:
    place = {step.label: position for position, step in enumerate(steps)}
    step = steps[index]
    if isinstance(step, CompleteStep | FailStep):
        yield []
        return
    targets: set[str | None] = {None}
    if isinstance(step, Check):
        targets = {step.met, step.unmet}
    elif isinstance(step, Branch):
        targets = {step.then, step.otherwise}
    for target in targets:
        for rest in paths(steps, index + 1 if target is None else place[target]):
            yield [step, *rest] if isinstance(step, Check) else rest


def alike(one: Check, other: Check) -> bool:
    same = (one.slot, one.met, one.unmet) == (other.slot, other.met, other.unmet)
    return same and (one.wanted == other.wanted or one.met == one.unmet)


def test_any_code_asks_the_same_and_comes_to_the_same() -> None:
    changed = 0
    for seed in range(3_000):
        rng = random.Random(seed)
        steps = random_code(rng)
        labels = itertools.count()
        threaded = thread(steps, lambda wanted, labels=labels: f"{wanted}_{next(labels)}")
        changed += threaded != steps
        slots = sorted({step.slot for step in steps if isinstance(step, Check)})
        for values in itertools.product((True, False, None), repeat=len(slots)):
            answers = dict(zip(slots, values, strict=True))
            assert walked(threaded, answers) == walked(steps, answers), f"seed {seed}"
        for path in paths(threaded):
            for one, other in itertools.combinations(path, 2):
                assert not alike(one, other), f"seed {seed}: {one.label} and {other.label}"
    assert changed > 100


def listing(tree: Tree, **kinds: str) -> list[str]:
    program: Program = compiled(tree, **kinds).program
    return [
        f"{step.label} {step.wanted} {step.met} {step.unmet}"
        for step in program.functions["goal"].steps
        if isinstance(step, Check)
    ]


def test_what_lies_between_is_written_for_each_answer() -> None:
    assert listing(InOrder((First((leaf("a"), leaf("b"))), leaf("c"), leaf("b")))) == [
        "check_a True check_c_2 None",
        "check_b True None refuse",
        "check_c True act refuse",
        "check_c_2 True None refuse",
        "check_b_2 True None refuse",
    ]


def test_what_no_path_comes_to_has_no_function() -> None:
    """Behind `b` and `not b` nothing is asked: only `c` leads on."""
    impossible = InOrder((First((leaf("a"), leaf("b"))), leaf("b"), leaf("b", False), leaf("d")))
    found = compiled(First((impossible, leaf("c"))))
    assert {"a", "b", "c"} <= found.program.functions.keys()
    assert "d" not in found.program.functions
    assert found.explanation.excluded == ("d",)
