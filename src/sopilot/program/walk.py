"""The step graph of one function: where each step may go, and what follows from that.

Which checks a refusal rests on: those without which it would not have come to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from sopilot.program.model import (
    Act,
    Always,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Holds,
    ReturnStep,
    Some,
    Step,
)

Targets = tuple[str | None, ...]


Successors = list[tuple[int, ...]]
"""Position of a step → positions it may go to. A target that does not exist is left out."""


_ENDS = (ReturnStep, CompleteStep, FailStep)


_JOINED = (Every, Some)


def continuations(step: Step) -> Targets:
    """The labels a step may go to; ``None`` is the step below it."""
    if isinstance(step, Check):
        return (step.met, step.unmet) if step.met != step.unmet else (step.met,)
    if isinstance(step, Branch):
        return (step.then, step.otherwise) if step.then != step.otherwise else (step.then,)
    if isinstance(step, Choose):
        return tuple(dict.fromkeys(option.target for option in step.options))
    if isinstance(step, _ENDS):
        return ()
    return (step.next,)


def slots_in(condition: Condition) -> Iterator[str]:
    """Every slot a condition reads, left to right. Safe on conditions of any depth."""
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Holds):
            yield part.slot
        elif isinstance(part, _JOINED):
            waiting.extend(reversed(part.conditions))


def condition_depth(condition: Condition) -> int:
    deepest = 0
    waiting = [(condition, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(part, _JOINED):
            waiting.extend((inner, depth + 1) for inner in part.conditions)
    return deepest


def step_condition(step: Step) -> Condition | None:
    """The condition a step evaluates over bound results, if it has one."""
    if isinstance(step, Branch):
        return step.when
    if isinstance(step, ReturnStep):
        return step.holds
    return None


def step_graph(function: Function, targets: Sequence[Targets]) -> Successors:
    """``targets`` are the continuations of each step, in order."""
    size = len(function.steps)
    position = {step.label: index for index, step in enumerate(function.steps)}
    graph: Successors = []
    for index, labels in enumerate(targets):
        places = tuple(
            [index + 1 if label is None else position.get(label, size) for label in labels]
        )
        if size in places:
            places = tuple([place for place in places if place < size])
        graph.append(places)
    return graph


def reachable(graph: Successors) -> list[bool]:
    """Which steps a run that starts at the first one can get to."""
    seen = [False] * len(graph)
    if graph:
        seen[0] = True
    waiting = [0] if graph else []
    while waiting:
        for successor in graph[waiting.pop()]:
            if not seen[successor]:
                seen[successor] = True
                waiting.append(successor)
    return seen


def can_end(graph: Successors, ends: Sequence[bool]) -> list[bool]:
    """Which steps have some path to an end."""
    sources: list[list[int]] = [[] for _ in graph]
    for index, successors in enumerate(graph):
        for successor in successors:
            sources[successor].append(index)
    able = list(ends)
    waiting = [index for index, end in enumerate(ends) if end]
    while waiting:
        for source in sources[waiting.pop()]:
            if not able[source]:
                able[source] = True
                waiting.append(source)
    return able


def find_cycle(graph: Successors, left_out: Sequence[bool]) -> list[int]:
    """Some cycle that avoids the steps in ``left_out``, or nothing."""
    state = [2 if out else 0 for out in left_out]  # 0 new, 1 on the path, 2 done
    for start in range(len(graph)):
        if state[start]:
            continue
        path: list[int] = [start]
        pending = [iter(graph[start])]
        state[start] = 1
        while path:
            successor = next(pending[-1], None)
            if successor is None:
                state[path.pop()] = 2
                pending.pop()
            elif state[successor] == 1:
                return path[path.index(successor) :]
            elif state[successor] == 0:
                state[successor] = 1
                path.append(successor)
                pending.append(iter(graph[successor]))
    return []


def runs_down(function: Function, targets: Sequence[Targets]) -> bool:
    """Every step is reached, and every jump goes down the listing: no loop, and every path ends."""
    labels = [step.label for step in function.steps]
    awaited, passed = {labels[0]}, set()
    for label, below, names in zip(labels, [*labels[1:], ""], targets, strict=True):
        if label not in awaited or label in passed:
            return False
        passed.add(label)
        for name in names:
            to = below if name is None else name
            if to in passed:
                return False
            awaited.add(to)
    return True


def bound_before(function: Function, graph: Successors, slots: Sequence[str]) -> list[int]:
    """For each step, which of ``slots`` every path to it has bound, as a bit set.

    A step that no path reaches has every bit set: nothing can go wrong there.
    """
    bit = {slot: 1 << index for index, slot in enumerate(slots)}
    everything = (1 << len(slots)) - 1
    gains = [bit.get(step.slot, 0) if isinstance(step, Check) else 0 for step in function.steps]
    bound = [everything] * len(graph)
    if graph:
        bound[0] = 0
    waiting = list(range(len(graph) - 1, -1, -1))
    queued = [True] * len(graph)
    while waiting:
        index = waiting.pop()
        queued[index] = False
        after = bound[index] | gains[index]
        for successor in graph[index]:
            narrowed = bound[successor] & after
            if narrowed != bound[successor]:
                bound[successor] = narrowed
                if not queued[successor]:
                    queued[successor] = True
                    waiting.append(successor)
    return bound


Results = Mapping[str, bool | None]
"""Slot → what is bound there; ``None`` is undecided, on neither side."""


def checks_to_blame(function: Function, results: Results) -> tuple[Check, ...]:
    """The unmet checks of a function that refused, each of which could have changed that. An
    option that came out wrong is none where another one served. All of them, where no single
    one could have changed it."""
    steps = function.checks
    unmet = [
        step for step in steps if step.slot in results and results[step.slot] is not step.wanted
    ]
    ended = _end(function, results)
    turning = [
        step for step in unmet if _end(function, {**results, step.slot: step.wanted}) is not ended
    ]
    return tuple(turning or unmet)


def _end(function: Function, results: Results) -> bool | None:
    """Whether the function ends well with these results; ``None`` where they do not tell."""
    steps = {step.label: step for step in function.steps}
    behind = dict(pairwise(steps))
    at: str | None = function.steps[0].label
    for _ in range(len(steps) + 1):
        step = steps.get(at or "")
        if isinstance(step, Check):
            if step.slot not in results:
                return None
            met = results[step.slot] is step.wanted
            at = (step.met if met else step.unmet) or behind.get(step.label)
        elif isinstance(step, Branch):
            taken = _truth(step.when, results)
            if taken is None:
                return None
            at = step.then if taken else step.otherwise
        elif isinstance(step, Act) and step.goal:
            return True
        elif isinstance(step, Act | Ask | Do | Emit):
            at = step.next or behind.get(step.label)
        elif isinstance(step, ReturnStep) and step.holds is not None:
            return _truth(step.holds, results)
        else:
            return False if isinstance(step, FailStep) else None
    return None


def _truth(condition: Condition, results: Results) -> bool | None:
    if isinstance(condition, Holds):
        if condition.slot not in results:
            return None
        return results[condition.slot] is condition.wanted
    if isinstance(condition, Always):
        return condition.value
    parts = [_truth(part, results) for part in condition.conditions]
    deciding = not isinstance(condition, Every)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding
