"""An abstract conforming executor: follows calls, returns and branches to the letter.

It knows programs only (no trees), and judges every rule by a given assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sopilot.handbook.requirements import Constant, Scalar
from sopilot.program.model import (
    Act,
    Always,
    Arguments,
    Ask,
    Branch,
    Check,
    CompleteStep,
    Condition,
    Every,
    FailStep,
    Function,
    Holds,
    Kind,
    Local,
    Program,
    ReturnStep,
    Unknown,
)

Key = tuple[str, tuple[tuple[str, Scalar], ...]]
"""A predicate with its argument values."""
Truth = Callable[[Key], bool]


@dataclass
class Run:
    accepted: bool = False
    judged: list[Key] = field(default_factory=list)
    """Every rule that ran, in order."""
    acted: list[str] = field(default_factory=list)
    """Every domain action that ran, in order."""
    refusal: str | None = None
    """What the process says where it refuses."""


class Executor:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._index = {
            name: {step.label: i for i, step in enumerate(function.steps)}
            for name, function in program.functions.items()
        }

    def run(self, truth: Truth) -> Run:
        run = Run()
        entry = self._program.functions[self._program.entry]
        run.accepted = self._call(entry, {p: f"<{p}>" for p in entry.parameters}, truth, run)
        return run

    def _call(self, function: Function, known: dict[str, Scalar], truth: Truth, run: Run) -> bool:
        steps = function.steps
        index = self._index[function.name]
        slots: dict[str, bool] = {}
        cursor = 0
        while True:
            step = steps[cursor]
            target: str | None = None
            if isinstance(step, Check):
                if step.slot not in slots:
                    callee = self._program.functions[step.function]
                    slots[step.slot] = self._call(
                        callee, _values(step.arguments, known), truth, run
                    )
                target = step.met if slots[step.slot] == step.wanted else step.unmet
            elif isinstance(step, Branch):
                target = step.then if _holds(step.when, slots) else step.otherwise
            elif isinstance(step, Act):
                run.acted.append(step.action)
            elif isinstance(step, Ask):
                pass
            elif isinstance(step, ReturnStep):
                if step.holds is not None:
                    return _holds(step.holds, slots)
                assert function.kind in (Kind.RULE, Kind.GATE)
                assert function.predicate is not None
                key = (function.predicate, tuple(known.items()))
                run.judged.append(key)
                return truth(key)
            elif isinstance(step, CompleteStep):
                return True
            else:
                assert isinstance(step, FailStep)
                run.refusal = str(step.says)
                return False
            cursor = cursor + 1 if target is None else index[target]


def _values(arguments: Arguments, known: dict[str, Scalar]) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, term in arguments:
        if isinstance(term, Local):
            values[name] = known[term.name]
        elif isinstance(term, Constant):
            values[name] = term.value
        else:
            assert isinstance(term, Unknown)
            values[name] = f"?{term.name}"
    return values


def _holds(condition: Condition, slots: dict[str, bool]) -> bool:
    if isinstance(condition, Holds):
        return slots[condition.slot] == condition.wanted
    if isinstance(condition, Always):
        return condition.value
    values = [_holds(part, slots) for part in condition.conditions]
    return all(values) if isinstance(condition, Every) else any(values)
