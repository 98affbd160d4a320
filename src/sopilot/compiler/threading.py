"""Jump threading: a path on which a result is known goes where that result leads.

In:  the steps of one function, every jump down the listing.
Out: equivalent steps in the same order, without two equal checks on one path. Steps between such
     checks are written once for each answer.

    check a  (met → 3)                 check a  (either way)
    check x  (unmet → refuse)     →    check x  (unmet → refuse)
    check x  (unmet → refuse)

A check that wasn't met may be undecided, so only the wanted result is excluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sopilot.program.model import Act, Branch, Check, Function, Step
from sopilot.program.walk import Successors, continuations, reachable, step_graph

_ANY = frozenset((True, False, None))

_Facts = dict[str, frozenset[bool | None]]
"""A bound result → what it may be."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A step of the new code: the old step, and the nodes that it goes to; ``met``, ``then`` or
    ``next`` first."""

    step: int
    targets: tuple[int, ...]


def thread(steps: tuple[Step, ...], numbered: Callable[[str], str]) -> tuple[Step, ...]:
    """``numbered`` gives a label that is not taken yet."""
    threaded = steps
    repeated: frozenset[str] = frozenset()
    while more := _repeated(threaded) - repeated:
        repeated |= more
        threaded = _without(repeated, steps, numbered)
    return threaded


def _repeated(steps: Sequence[Step]) -> frozenset[str]:
    """The slots of equal checks of which one is reachable from another."""
    slots = [step.slot for step in steps if isinstance(step, Check)]
    if len(slots) == len(set(slots)):
        return frozenset()
    checked: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        if isinstance(step, Check):
            checked.setdefault(step.slot, []).append(index)
    several: list[tuple[str, list[int]]] = []
    for slot, places in checked.items():
        if len(places) > 1:
            alike: dict[Check, list[int]] = {}
            for index in places:
                step = steps[index]
                assert isinstance(step, Check)
                # If both answers lead to the same step, neither is wanted.
                wanted = step.wanted or step.met == step.unmet
                alike.setdefault(replace(step, label="", wanted=wanted), []).append(index)
            several += [(slot, some) for some in alike.values()]
    targets = _targets(steps)
    return frozenset(
        slot
        for slot, places in several
        if any(reachable(targets.__getitem__, targets[at]) & set(places) for at in places)
    )


def _without(
    repeated: frozenset[str], steps: tuple[Step, ...], numbered: Callable[[str], str]
) -> tuple[Step, ...]:
    targets = _targets(steps)
    needed = [result & repeated for result in _checked_below(steps, targets)]
    code = _Specialised(steps, targets, needed)
    first = code.node(0, {})
    if _acts(steps) and not _acts([steps[node.step] for node in code.nodes]):
        # Nothing could satisfy it: keep a contradiction as it was written.
        code = _Specialised(steps, targets, needed, to_the_letter=False)
        first = code.node(0, {})
    return _listing(steps, code.nodes, first, numbered)


def _acts(steps: Sequence[Step]) -> bool:
    return any(isinstance(step, Act) for step in steps)


def _targets(steps: Sequence[Step]) -> Successors:
    return step_graph(steps, [continuations(step) for step in steps])


def _checked_below(
    steps: Sequence[Step], targets: Sequence[tuple[int, ...]]
) -> list[frozenset[str]]:
    """For every step the slots that are checked there or further on."""
    below: list[frozenset[str]] = [frozenset()] * len(steps)
    for index, step in reversed(list(enumerate(steps))):
        own = frozenset((step.slot,)) if isinstance(step, Check) else frozenset[str]()
        below[index] = own.union(*(below[to] for to in targets[index]))
    return below


@dataclass(slots=True)
class _Specialised:
    """The code with a copy of each step per set of known results; equal copies are merged."""

    steps: Sequence[Step]
    targets: Sequence[tuple[int, ...]]
    needed: Sequence[frozenset[str]]
    to_the_letter: bool = True
    nodes: list[_Node] = field(default_factory=list)
    same: dict[object, int] = field(default_factory=dict)
    made: dict[object, int] = field(default_factory=dict)

    def node(self, index: int, facts: _Facts) -> int:
        facts = {slot: may for slot, may in facts.items() if slot in self.needed[index]}
        key = (index, frozenset(facts.items()))
        if key not in self.made:
            self.made[key] = self._make(index, facts)
        return self.made[key]

    def _make(self, index: int, facts: _Facts) -> int:
        step = self.steps[index]
        if not isinstance(step, Check):
            targets = tuple(self.node(to, facts) for to in self.targets[index])
            if isinstance(step, Branch):
                then, otherwise = targets
                if then == otherwise:
                    return then
            return self._kept_target(index, targets)
        if_met, if_unmet = self.targets[index]
        may = facts.get(step.slot, _ANY)
        wanted = frozenset((step.wanted,))
        if may <= wanted:
            return self.node(if_met, facts)
        contradicted = may == frozenset((not step.wanted,))
        if not may & wanted and (self.to_the_letter or not contradicted):
            return self.node(if_unmet, facts)
        met = self.node(if_met, {**facts, step.slot: may & wanted})
        unmet = self.node(if_unmet, {**facts, step.slot: may - wanted})
        if met == unmet and step.slot in facts:
            return met
        return self._kept_target(index, (met, unmet))

    def _kept_target(self, index: int, targets: tuple[int, ...]) -> int:
        key = (_bare(self.steps[index]), targets)
        result = self.same.setdefault(key, len(self.nodes))
        if result == len(self.nodes):
            self.nodes.append(_Node(index, targets))
        else:
            self.nodes[result] = _Node(min(index, self.nodes[result].step), targets)
        return result


def _bare(step: Step) -> object:
    """The step without label and targets."""
    if isinstance(step, Check):
        return replace(step, label="", met=None, unmet=None)
    return replace(step, label="", then="", otherwise="") if isinstance(step, Branch) else step


def _listing(
    steps: Sequence[Step],
    nodes: Sequence[_Node],
    first: int,
    numbered: Callable[[str], str],
) -> tuple[Step, ...]:
    order = _order(steps, nodes, first)
    taken: set[str] = set()
    labels: dict[int, str] = {}
    for node in order:
        own = steps[nodes[node].step].label
        labels[node] = own if own not in taken else numbered(own)
        taken.add(labels[node])
    place = {node: position for position, node in enumerate(order)}
    listed: list[Step] = []
    for node in order:
        step = replace(steps[nodes[node].step], label=labels[node])
        goes = nodes[node].targets
        if isinstance(step, Branch):
            listed.append(replace(step, then=labels[goes[0]], otherwise=labels[goes[1]]))
            continue
        following = [None if place[to] == place[node] + 1 else labels[to] for to in goes]
        if isinstance(step, Check):
            step = replace(step, met=following[0], unmet=following[1])
        elif isinstance(step, Act):
            step = replace(step, next=following[0])
        listed.append(step)
    return tuple(listed)


def _order(steps: Sequence[Step], nodes: Sequence[_Node], first: int) -> list[int]:
    """The nodes in listing order. If possible, a step stays above the step it fell through to."""
    reached = reachable(lambda node: nodes[node].targets, [first])
    waiting = Counter([to for node in reached for to in set(nodes[node].targets)])
    ready = {first}
    order: list[int] = []
    below: int | None = None
    while ready:
        here = below if below in ready else min(ready, key=lambda item: (nodes[item].step, item))
        ready.remove(here)
        order.append(here)
        below = _falls_to(steps[nodes[here].step], nodes[here])
        for to in set(nodes[here].targets):
            waiting[to] -= 1
            if not waiting[to]:
                ready.add(to)
    return order


def _falls_to(step: Step, node: _Node) -> int | None:
    """The node that the step fell through to; ``None`` if it jumped or ended."""
    if isinstance(step, Branch) or not node.targets:
        return None
    return node.targets[1 if isinstance(step, Check) and step.met is not None else 0]


def without_uncalled(functions: dict[str, Function], entry: str) -> set[str]:
    """Remove the groups that no path reaches; return the names that the others call."""

    def called_by(name: str) -> list[str]:
        return [step.function for step in functions[name].checks] if name in functions else []

    called = reachable(called_by, [entry])
    for name in functions.keys() - called:
        del functions[name]
    return called
