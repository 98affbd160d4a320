"""Three-valued acceptance: what bound results prove about a program's end.

``True``: whatever the open checks say, the program accepts. ``False``: it cannot
accept any more. ``None``: open. Jumping checks are tried both ways; where both
ways agree, an open check decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sopilot.machine.layout import FunctionLayout, ProgramLayout
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
    Holds,
    ReturnStep,
)

Truth = bool | None


Slots = Mapping[str, Truth]


Settled = Callable[[Check, FunctionLayout, tuple[Arguments, ...]], Truth]
"""The known result of a rule or gate that a check calls; ``None`` while it is open. The
arguments of the calls that lead there come outermost first."""


Done = Callable[[FunctionLayout, Act | Do | Emit, tuple[Arguments, ...]], bool]
"""Whether a step that the executor does by itself was done; the arguments as above."""


DEEPEST = 64


def condition_truth(condition: Condition, slots: Slots) -> Truth:
    if isinstance(condition, Holds):
        bound = slots.get(condition.slot)
        return None if bound is None else bound == condition.wanted
    if isinstance(condition, Always):
        return condition.value
    parts = [condition_truth(part, slots) for part in condition.conditions]
    deciding = not isinstance(condition, Every)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


class Acceptance:
    """Evaluates one program under what is settled about its rules. With ``goal`` the question
    is whether that very step is reached, by some choice of whoever may choose, over steps
    of which ``done`` says that they were."""

    def __init__(
        self,
        program: ProgramLayout,
        settled: Settled,
        goal: str | None = None,
        done: Done | None = None,
    ) -> None:
        self._program = program
        self._settled = settled
        self._goal = goal
        self._done = done
        self._asking: dict[str, Check] = {}
        self._memo: dict[tuple[str, str, frozenset[tuple[str, Truth]]], Truth] = {}

    def from_step(
        self,
        layout: FunctionLayout,
        label: str,
        slots: Slots,
        arguments: tuple[Arguments, ...],
        seen: frozenset[str] = frozenset(),
        inner: Truth | None = None,
        *,
        entered: bool = False,
    ) -> Truth:
        """From a step on. ``entered``: the check at ``label`` is underway, with ``inner``."""
        key = (layout.function.name, label, frozenset(slots.items()))
        top = not entered and not arguments
        if top and key in self._memo:
            return self._memo[key]
        value = self._step(layout, label, slots, arguments, seen, inner, entered)
        if self._goal is not None and not arguments:
            value = value is True  # what is not shown leads nowhere
        if top:
            self._memo[key] = value
        return value

    def _step(
        self,
        layout: FunctionLayout,
        label: str,
        slots: Slots,
        arguments: tuple[Arguments, ...],
        seen: frozenset[str],
        inner: Truth,
        entered: bool,
    ) -> Truth:
        if label in seen or label not in layout.steps:
            return None
        step = layout.steps[label]
        seen = seen | {label}

        def go(target: str, with_slots: Slots) -> Truth:
            return self.from_step(layout, target, with_slots, arguments, seen)

        if isinstance(step, Check):
            result = inner if entered else slots.get(step.slot)
            if result is None and not entered:
                result = self.result_of(step, layout, arguments)
            met, unmet = layout.after[step.label], layout.unmet[step.label]
            if result is not None:
                return go(met if result == step.wanted else unmet, {**slots, step.slot: result})
            if met == unmet:
                return go(met, {**slots, step.slot: None})
            if self._goal is not None:
                # It stays undecided on both: nothing is shown by assuming it.
                open_still = {**slots, step.slot: None}
                return _both(lambda: go(unmet, open_still), lambda: go(met, open_still))
            return _both(
                lambda: go(unmet, {**slots, step.slot: not step.wanted}),
                lambda: go(met, {**slots, step.slot: step.wanted}),
            )
        if isinstance(step, Branch):
            taken = condition_truth(step.when, slots)
            if taken is not None:
                return go(step.then if taken else step.otherwise, slots)
            return _both(lambda: go(step.otherwise, slots), lambda: go(step.then, slots))
        if isinstance(step, Choose):
            ways = (go(option.target, slots) for option in step.options)
            if self._goal is None:
                return _all_ways(ways)
            return True if any(way is True for way in ways) else None
        if isinstance(step, Act) and step.goal and self._goal in (None, label):
            return True
        if isinstance(step, Act | Do | Emit) and not self._was_done(layout, step, arguments):
            return None
        if isinstance(step, Act | Ask | Do | Emit):
            return go(layout.after[step.label], slots)
        if isinstance(step, ReturnStep):
            if step.holds is not None:
                return condition_truth(step.holds, slots)
            return self._returned(layout, arguments)
        return self._goal is None and isinstance(step, CompleteStep)

    def _was_done(
        self, layout: FunctionLayout, step: Act | Do | Emit, arguments: tuple[Arguments, ...]
    ) -> bool:
        """What the executor does by itself, where the question is what was really done. What is
        done in a rule is its evidence."""
        if layout.soft or self._done is None:
            return True
        return self._done(layout, step, arguments)

    def _returned(self, layout: FunctionLayout, arguments: tuple[Arguments, ...]) -> Truth:
        """What a rule or gate that also branches says where it judges its own calls."""
        own = self._asking.get(layout.function.name)
        return None if own is None else self._settled(own, layout, arguments)

    def result_of(
        self, step: Check, layout: FunctionLayout, arguments: tuple[Arguments, ...]
    ) -> Truth:
        """What the called function returns, as far as that is settled."""
        callee = self._program.functions[step.function]
        chain = (*arguments, step.arguments)
        if callee.soft and (self._goal is None or not callee.function.branches):
            return self._settled(step, callee, chain)
        if len(chain) > DEEPEST:
            return None
        if callee.soft:
            self._asking[callee.function.name] = step
        return self.from_step(callee, callee.first, {}, chain)


def _both(one: Callable[[], Truth], other: Callable[[], Truth]) -> Truth:
    first = one()
    return first if first is not None and other() == first else None


def _all_ways(ways: Iterator[Truth] | Sequence[Truth]) -> Truth:
    values = set(ways)
    return values.pop() if len(values) == 1 else None
