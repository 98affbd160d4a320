"""Which checks a refusal rests on: those without which it would not have come to it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from sopilot.language.program.model import (
    Act,
    Always,
    Ask,
    Branch,
    Check,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Holds,
    ReturnStep,
)

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
