"""Programs as the audit reads them: labels resolved, recipes at hand.

Made from the program alone and without the machine's own preparation, so that
a mistake there cannot hide in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sopilot.language.program.model import (
    Act,
    Ask,
    Check,
    Do,
    Emit,
    Function,
    Guarded,
    Kind,
    Program,
    Step,
    Unknown,
)


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """One function. ``acts`` are the calls of every admissible recipe."""

    function: Function
    steps: Mapping[str, Step]
    behind: Mapping[str, str]
    recipes: tuple[tuple[Act, ...], ...]
    acts: tuple[Act, ...]
    learnable: frozenset[str]

    @property
    def judges(self) -> bool:
        """Whether the function judges a predicate: a rule or a gate."""
        return self.function.kind in (Kind.RULE, Kind.GATE)

    def first(self) -> str:
        return self.function.steps[0].label

    def target(self, step: Check, holds: bool | None) -> str:
        named = step.met if holds == step.wanted else step.unmet
        return named or self.behind[step.label]

    def following(self, step: Act | Ask | Do | Emit) -> str:
        return step.next or self.behind[step.label]


@dataclass(frozen=True, slots=True)
class ProgramCode:
    goal: str
    program: Program
    functions: Mapping[str, ResolvedFunction]
    goal_actions: frozenset[str]
    guarded: Mapping[str, Guarded]

    @property
    def entry(self) -> ResolvedFunction:
        return self.functions[self.program.entry]


def read_program(goal: str, program: Program) -> ProgramCode:
    goals = frozenset(
        step.action
        for function in program.functions.values()
        for step in function.steps
        if isinstance(step, Act) and step.goal
    )
    return ProgramCode(
        goal,
        program,
        {name: _code(function) for name, function in program.functions.items()},
        goals,
        {guarded.action: guarded for guarded in program.guarded},
    )


def _code(function: Function) -> ResolvedFunction:
    labels = [step.label for step in function.steps]
    own = tuple(step for step in function.steps if isinstance(step, Act))
    recipes = ((own,) if own else ()) + tuple(function.fallbacks)
    acts = tuple(act for recipe in recipes for act in recipe)
    learnable = {name for step in function.steps if isinstance(step, Ask) for name in step.wants}
    for step in function.steps:
        if isinstance(step, Check):
            learnable |= {term.name for _, term in step.arguments if isinstance(term, Unknown)}
    for act in acts:
        learnable |= {term.name for _, term in act.arguments if isinstance(term, Unknown)}
    return ResolvedFunction(
        function,
        {step.label: step for step in function.steps},
        dict(pairwise(labels)),
        recipes,
        acts,
        frozenset(learnable),
    )
