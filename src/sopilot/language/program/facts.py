"""What a proof must know of the actions of several programs that run side by side."""

from __future__ import annotations

from collections.abc import Iterable

from sopilot.language.program.model import Act, ActionFacts, Kind, Program


def known_facts(programs: Iterable[Program]) -> dict[str, ActionFacts]:
    """By action; empty where nothing is guarded. Where two programs disagree, an action changes
    and reads what either says."""
    every = tuple(programs)
    found: dict[str, ActionFacts] = {}
    for program in every:
        for name, facts in program.actions.items():
            found[name] = _both(found[name], facts) if name in found else facts
    for program in every:
        if program.guarded and program.format > 1:
            found = {**_unsaid(program), **found}
    return found


def _unsaid(program: Program) -> dict[str, ActionFacts]:
    """What a program written by hand need not say: who looks changes nothing, and an action that
    nobody described changes everything."""
    looks, does = set[str](), {one.action for one in program.guarded}
    for function in program.functions.values():
        acts = [step for step in function.steps if isinstance(step, Act)]
        does |= {act.action for act in acts if act.goal}
        if function.kind is Kind.RULE:
            looks |= {act.action for recipe in (acts, *function.fallbacks) for act in recipe}
    quiet = ActionFacts({}, changes=())
    return {**dict.fromkeys(sorted(looks), quiet), **dict.fromkeys(sorted(does), ActionFacts({}))}


def _both(one: ActionFacts, other: ActionFacts) -> ActionFacts:
    if one == other:
        return one
    return ActionFacts(
        {**one.inputs, **other.inputs},
        tuple(dict.fromkeys((*one.required, *other.required))),
        _either(one.changes, other.changes),
        _either(one.reads, other.reads),
    )


def _either(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return None
    return tuple(dict.fromkeys((*one, *other)))
