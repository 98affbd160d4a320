"""Walks over programs: the step graph, conditions, paths under an oracle, checks to blame.

``truth`` evaluates a condition over results. ``Walk`` follows a program while an oracle answers
its checks, and tries undecided checks both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeVar

from sopilot.handbook.requirements import Constant
from sopilot.program.model import (
    Act,
    Always,
    Arguments,
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
    Kind,
    ReturnStep,
    Some,
    Step,
    Unknown,
)
from sopilot.values.json import JSON

Targets = tuple[str | None, ...]

Successors = list[tuple[int, ...]]
"""Position of a step → positions it may go to. Missing targets are left out."""

Node = TypeVar("Node", bound=Hashable)

ENDS = (ReturnStep, CompleteStep, FailStep)


def continuations(step: Step) -> Targets:
    """The labels a step may go to, ``met`` and ``then`` first; ``None`` is the step below it."""
    if isinstance(step, Check):
        return step.met, step.unmet
    if isinstance(step, Branch):
        return step.then, step.otherwise
    if isinstance(step, Choose):
        return tuple([option.target for option in step.options])
    if isinstance(step, ENDS):
        return ()
    return (step.next,)


def slots_and_depth(condition: Condition) -> tuple[tuple[str, ...], int]:
    """The slots that a condition reads, left to right, each once, and how deep it is nested. Not
    recursive: conditions may be deep."""
    slots: dict[str, None] = {}
    deepest = 0
    waiting = [(condition, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(part, Holds):
            slots[part.slot] = None
        elif isinstance(part, Every | Some):
            waiting.extend([(inner, depth + 1) for inner in reversed(part.conditions)])
    return tuple(slots), deepest


def step_graph(steps: Sequence[Step], targets: Sequence[Targets]) -> Successors:
    """``targets`` are the continuations of each step, in order."""
    size = len(steps)
    position = {step.label: index for index, step in enumerate(steps)}
    graph: Successors = []
    for index, labels in enumerate(targets):
        places = tuple(
            [index + 1 if label is None else position.get(label, size) for label in labels]
        )
        if size in places:
            places = tuple([place for place in places if place < size])
        graph.append(places)
    return graph


def reachable(successors: Callable[[Node], Iterable[Node]], starts: Iterable[Node]) -> set[Node]:
    """The starts and every node that is reachable from them."""
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        new = set(successors(waiting.pop())) - seen
        seen |= new
        waiting += new
    return seen


def reversed_graph(graph: Successors) -> Successors:
    """For every step, the steps that may go to it."""
    sources: list[list[int]] = [[] for _ in graph]
    for index, successors in enumerate(graph):
        for successor in successors:
            sources[successor].append(index)
    return [tuple(places) for places in sources]


def cycles(
    successors: Callable[[Node], Iterable[Node]], starts: Iterable[Node]
) -> Iterator[list[Node]]:
    """The cycles that a depth-first search from ``starts`` closes."""
    done: set[Node] = set()
    for start in starts:
        if start in done:
            continue
        path = {start: iter(successors(start))}
        while path:
            node, pending = next(reversed(path.items()))
            successor = next(pending, None)
            if successor is None:
                del path[node]
                done.add(node)
            elif successor in path:
                nodes = list(path)
                yield nodes[nodes.index(successor) :]
            elif successor not in done:
                path[successor] = iter(successors(successor))


def runs_down(function: Function, targets: Sequence[Targets]) -> bool:
    """Whether every step is reached and every jump goes down the listing: then every path ends."""
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
    """For each step a bit set of the ``slots`` that every path to it has bound.

    An unreachable step has every bit set.
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
"""Slot → result. ``None`` and an unbound slot are undecided."""


def truth(condition: Condition, results: Results) -> bool | None:
    """The three-valued value of a condition. The machine acts on ``truth(…) is True``."""
    if isinstance(condition, Holds):
        holds = results.get(condition.slot)
        return None if holds is None else holds is condition.wanted
    if isinstance(condition, Always):
        return condition.value
    parts = [truth(part, results) for part in condition.conditions]
    deciding = isinstance(condition, Some)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


def checks_to_blame(function: Function, results: Results) -> tuple[Check, ...]:
    """The unmet checks of a function that refused, each of which alone would have changed the
    outcome. If none would have, all unmet checks."""
    unmet = [
        step
        for step in function.checks
        if step.slot in results and results[step.slot] is not step.wanted
    ]
    ended = _end(function, results)
    turning = [
        step for step in unmet if _end(function, {**results, step.slot: step.wanted}) is not ended
    ]
    return tuple(turning or unmet)


def _end(function: Function, results: Results) -> bool | None:
    """Whether the function ends well with these results; ``None`` if they don't decide it.

    As in the machine, an undecided bound result is unmet.
    """
    steps = {step.label: step for step in function.steps}
    below = dict(pairwise(steps))
    label: str | None = function.steps[0].label
    for _ in range(len(steps) + 1):
        step = steps.get(label or "")
        if isinstance(step, Check):
            if step.slot not in results:
                return None
            met = results[step.slot] is step.wanted
            label = (step.met if met else step.unmet) or below.get(step.label)
        elif isinstance(step, Branch):
            label = step.then if truth(step.when, results) else step.otherwise
        elif isinstance(step, Act) and step.goal:
            return True
        elif isinstance(step, Act | Ask | Do | Emit):
            label = step.next or below.get(step.label)
        elif isinstance(step, ReturnStep) and step.holds is not None:
            return truth(step.holds, results) is True
        else:
            return False if isinstance(step, FailStep) else None
    return None


class Flow(Protocol):
    """A function with its steps by label and the label that follows each step.

    ``after`` is where a met check goes, ``unmet`` where an unmet one does.
    """

    @property
    def function(self) -> Function: ...
    @property
    def first(self) -> str: ...
    @property
    def steps(self) -> Mapping[str, Step]: ...
    @property
    def after(self) -> Mapping[str, str]: ...
    @property
    def unmet(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Activation:
    """A function under the values of its parameters; ``check`` is the step that called it."""

    flow: Flow
    values: Mapping[str, JSON]
    check: Check | None = None
    depth: int = 0
    memo: dict[object, bool | None] = field(default_factory=dict)


class Oracle(Protocol):
    def judge(self, check: Check, callee: Flow, values: Mapping[str, JSON]) -> bool | None:
        """Return the result of a rule or gate; ``None`` while it is undecided."""

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        """Return whether the executor has carried out a step of a process or group."""


DEEPEST_CALL = 64


def passed_values(
    arguments: Arguments, values: Mapping[str, JSON], known: Mapping[str, JSON]
) -> dict[str, JSON]:
    """P1: one value per name. A name that the caller doesn't know has the process's value."""
    passed: dict[str, JSON] = {}
    for parameter, term in arguments:
        if isinstance(term, Constant):
            passed[parameter] = term.value
            continue
        value = values.get(term.name)
        if value is None and isinstance(term, Unknown):
            value = known.get(term.name)
        if value is not None:
            passed[parameter] = value
    return passed


def _judges(function: Function) -> bool:
    return function.kind in (Kind.RULE, Kind.GATE)


@dataclass(frozen=True, slots=True)
class Walk:
    """Follows a program while ``oracle`` answers its checks.

    With ``goal``, the label of a goal action, the question is whether some choices of the executor
    lead to that step for every result of the open checks. Without it, the question is whether the
    program accepts; ``None`` if that depends on the open checks.
    """

    functions: Mapping[str, Flow]
    oracle: Oracle
    known: Mapping[str, JSON]
    """The values of the process, for names that a caller lacks."""
    goal: str | None = None
    exhaustive: bool = False
    """Walk both sides of an undecided check even if the first settles the result, so that the
    oracle sees every check on the way."""

    def enter(self, within: Activation) -> bool | None:
        """Whether the goal is reached or accepted in a process; the result of another function."""
        return self.from_step(within, within.flow.first, {})

    def from_step(
        self,
        within: Activation,
        label: str,
        slots: Results,
        seen: frozenset[str] = frozenset(),
    ) -> bool | None:
        key = (label, frozenset(slots.items()))
        if key not in within.memo:
            within.memo[key] = self._walk(within, label, slots, seen)
        return within.memo[key]

    def result(self, check: Check, within: Activation) -> bool | None:
        """The result of the function that ``check`` calls, as far as it is decided."""
        callee = self.functions[check.function]
        values = passed_values(check.arguments, within.values, self.known)
        if _judges(callee.function) and (self.goal is None or not callee.function.branches):
            return self.oracle.judge(check, callee, values)
        if within.depth >= DEEPEST_CALL:
            return None
        return self.enter(Activation(callee, values, check, within.depth + 1))

    def past_check(
        self,
        within: Activation,
        check: Check,
        holds: bool | None,
        slots: Results,
        seen: frozenset[str] = frozenset(),
    ) -> bool | None:
        """Go on after a check with this result; try both sides if it is undecided."""
        met, unmet = within.flow.after[check.label], within.flow.unmet[check.label]
        bound = {**slots, check.slot: holds}
        if holds is not None or met == unmet:
            return self.from_step(within, met if holds is check.wanted else unmet, bound, seen)
        if self.goal is not None:
            # It stays undecided on both sides: assuming it proves nothing.
            return self._both(within, (unmet, bound), (met, bound), seen)
        failing = {**slots, check.slot: not check.wanted}
        passing = {**slots, check.slot: check.wanted}
        return self._both(within, (unmet, failing), (met, passing), seen)

    def _walk(
        self, within: Activation, label: str, slots: Results, seen: frozenset[str]
    ) -> bool | None:
        flow, goal = within.flow, self.goal
        while label not in seen and label in flow.steps:
            seen |= {label}
            step = flow.steps[label]
            if isinstance(step, Check):
                holds = slots.get(step.slot)
                if holds is None:
                    holds = self.result(step, within)
                if holds is None:
                    return self.past_check(within, step, None, slots, seen)
                slots = {**slots, step.slot: holds}
                label = flow.after[label] if holds is step.wanted else flow.unmet[label]
            elif isinstance(step, Branch):
                taken = truth(step.when, slots)
                if taken is None:
                    return self._both(within, (step.otherwise, slots), (step.then, slots), seen)
                label = step.then if taken else step.otherwise
            elif isinstance(step, Choose):
                ways = (
                    self.from_step(within, option.target, slots, seen) for option in step.options
                )
                if goal is not None:
                    return True if any(way is True for way in ways) else None
                first, *others = ways
                return first if all(way is first for way in others) else None
            elif isinstance(step, Act | Ask | Do | Emit):
                if self.is_goal(within, step):
                    return True
                if not isinstance(step, Ask) and not self.was_done(within, step):
                    return None
                label = flow.after[label]
            elif isinstance(step, ReturnStep):
                if step.holds is not None:
                    return truth(step.holds, slots)
                if within.check is None or not _judges(flow.function):
                    return None
                return self.oracle.judge(within.check, flow, within.values)
            else:
                return isinstance(step, CompleteStep) if goal is None else None
        return None

    def is_goal(self, within: Activation, step: Step) -> bool:
        at_goal = within.depth == 0 and self.goal in (None, step.label)
        return at_goal and isinstance(step, Act) and step.goal

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        """Whether a step counts as done. The calls of a rule do: its end judges their answers."""
        if self.goal is None or _judges(within.flow.function):
            return True
        return self.oracle.was_done(within, step)

    def _both(
        self,
        within: Activation,
        item: tuple[str, Results],
        other: tuple[str, Results],
        seen: frozenset[str],
    ) -> bool | None:
        first = self.from_step(within, *item, seen)
        if first is None and not self.exhaustive:
            return None
        return first if self.from_step(within, *other, seen) is first else None
