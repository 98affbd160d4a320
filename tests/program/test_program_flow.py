"""The verifier's path analyses against a walk over every path of small random graphs."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.program.model import (
    Branch,
    Check,
    Choose,
    CompleteStep,
    FailStep,
    Function,
    Holds,
    Kind,
    Option,
    Program,
    ReturnStep,
    Source,
    Step,
)
from sopilot.program.verifier import verify_program
from sopilot.program.walk import continuations

SLOTS = ("x", "y")
RULES = {
    name: Function(name, Kind.RULE, (), (ReturnStep("end"),), predicate=name)
    for name in ("rx", "ry")
}


@st.composite
def graphs(draw: st.DrawFn) -> Function:
    """A process of a few steps that jump anywhere, forwards and backwards."""
    size = draw(st.integers(1, 6))
    labels = [f"s{index}" for index in range(size)]
    target = st.sampled_from(labels)
    steps: list[Step] = []
    for label in labels:
        kind = draw(st.integers(0, 4))
        if kind == 0:
            slot = draw(st.sampled_from(SLOTS))
            steps.append(Check(label, f"r{slot}", (), slot, True, draw(target), draw(target)))
        elif kind == 1:
            slot = draw(st.sampled_from(SLOTS))
            steps.append(Branch(label, Holds(slot), draw(target), draw(target)))
        elif kind == 2:
            steps.append(Choose(label, "", (Option("a", draw(target)), Option("b", draw(target)))))
        else:
            steps.append(CompleteStep(label) if kind == 3 else FailStep(label))
    return Function("main", Kind.PROCESS, (), tuple(steps))


def _walk(function: Function) -> tuple[set[str], set[tuple[str, str]]]:
    """Labels some path gets to, and (label, slot) reads that some path has not bound.

    States are (label, bound slots): finitely many, so this enumerates every path's effect.
    """
    steps = {step.label: step for step in function.steps}
    waiting: list[tuple[str, frozenset[str]]] = [(function.steps[0].label, frozenset())]
    seen = set(waiting)
    unbound: set[tuple[str, str]] = set()
    while waiting:
        label, bound = waiting.pop()
        step = steps[label]
        if isinstance(step, Check):
            bound |= {step.slot}
        if (
            isinstance(step, Branch)
            and isinstance(step.when, Holds)
            and step.when.slot not in bound
        ):
            unbound.add((label, step.when.slot))
        for target in continuations(step):
            assert target is not None
            if (target, bound) not in seen:
                seen.add((target, bound))
                waiting.append((target, bound))
    return {label for label, _ in seen}, unbound


def _ends_from(function: Function, label: str) -> bool:
    steps = {step.label: step for step in function.steps}
    waiting, seen = [label], {label}
    while waiting:
        step = steps[waiting.pop()]
        if isinstance(step, CompleteStep | FailStep):
            return True
        for target in continuations(step):
            assert target is not None
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


def _loops_without_choice(function: Function) -> bool:
    steps = {step.label: step for step in function.steps}

    def back_to(start: str, label: str, seen: set[str]) -> bool:
        for target in continuations(steps[label]):
            assert target is not None
            if target == start:
                return True
            if target not in seen and not isinstance(steps[target], Choose):
                seen.add(target)
                if back_to(start, target, seen):
                    return True
        return False

    return any(
        back_to(label, label, set()) for label, s in steps.items() if not isinstance(s, Choose)
    )


@settings(deadline=None, max_examples=400)
@given(graphs())
def test_paths_are_judged_as_a_walk_over_all_of_them_would(function: Function) -> None:
    called = {step.function for step in function.steps if isinstance(step, Check)}
    functions = {"main": function} | {name: RULES[name] for name in sorted(called)}
    found = verify_program(Program("main", functions, Source("", "", ""), ""))
    codes = {(one.code, one.place.path.partition("@")[2]) for one in found}
    reached, unbound = _walk(function)
    labels = {step.label for step in function.steps}
    assert {label for code, label in codes if code == "unreachable-step"} == labels - reached
    from_verifier = {
        (one.place.path.partition("@")[2], one.message.split("`")[1])
        for one in found
        if one.code == "unbound-slot" and one.place.path.partition("@")[2] in reached
    }
    assert from_verifier == unbound
    trapped = any(not _ends_from(function, label) for label in labels)
    assert any(code == "no-end" for code, _ in codes) is trapped
    endless = any(code == "endless-loop" for code, _ in codes)
    assert endless is (not trapped and _loops_without_choice(function))


def _long(size: int) -> Program:
    steps: list[Step] = []
    for index in range(size):
        steps.append(Check(f"c{index}", "rx", (), f"x{index}"))
        steps.append(Branch(f"b{index}", Holds(f"x{index}"), f"c{index + 1}", "no"))
    steps += [Check(f"c{size}", "rx", (), "x0"), CompleteStep("end"), FailStep("no")]
    main = Function("main", Kind.PROCESS, (), tuple(steps))
    return Program("main", {"main": main, "rx": RULES["rx"]}, Source("", "", ""), "")


def test_time_grows_with_size_and_not_with_its_square() -> None:
    def seconds(size: int) -> float:
        program = _long(size)
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            assert verify_program(program) == []
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(1_000), seconds(8_000)
    assert large < 8 * small * 5, (small, large)
