"""Who judges the checks of a guarded action.

In:  a compiled program.
Out: the predicates that a model may judge for it, and those that nobody can prove: where one
     of them is needed, a person must decide.

Nothing is told of a program whose goal is not guarded: there a model's word is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sopilot.language.program.model import Act, ActionFacts, Function, Kind, Program


@dataclass(frozen=True, slots=True)
class Unprovable:
    """``verifier`` is the action that changes itself what it reads; empty where no machine can
    judge and the handbook trusts no model."""

    predicate: str
    verifier: str = ""


def judged_by_model(program: Program) -> tuple[str, ...]:
    """Where the guarded action may rest on a model's word."""
    return tuple(
        function.judges
        for function in _rules(program)
        if function.verdict is None and function.judged_by_model
    )


def unprovable(program: Program) -> tuple[Unprovable, ...]:
    found: list[Unprovable] = []
    for function in _rules(program):
        name = function.judges
        disturbing = [_disturbs_itself(recipe, program) for recipe in _recipes(function)]
        if function.verdict is None and not function.judged_by_model:
            found.append(Unprovable(name))
        elif disturbing and all(disturbing):
            found.append(Unprovable(name, disturbing[0]))
    return tuple(found)


def _rules(program: Program) -> Iterator[Function]:
    guarded = {guard.action for guard in program.guarded}
    steps = program.functions[program.entry].steps
    if any(isinstance(step, Act) and step.goal and step.action in guarded for step in steps):
        yield from (one for one in program.functions.values() if one.kind is Kind.RULE)


def _recipes(function: Function) -> Iterator[tuple[Act, ...]]:
    chosen = tuple(step for step in function.steps if isinstance(step, Act))
    if chosen:
        yield chosen
    yield from function.fallbacks


def _disturbs_itself(recipe: tuple[Act, ...], program: Program) -> str:
    """The first call of a recipe that makes its own answer old; empty without one."""
    return next((act.action for act in recipe if _is_never_fresh(program.actions[act.action])), "")


def _is_never_fresh(facts: ActionFacts) -> bool:
    if facts.changes is None or facts.reads is None:
        return facts.changes != ()
    return not set(facts.changes).isdisjoint(facts.reads)
