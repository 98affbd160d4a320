"""Stateful subroutines: gates that are opened over several turns.

In:  a predicate that an action establishes.
Out: a function that asks the user for what is missing, calls the action and
     returns whether the gate is open. Its frame stays on the stack while the
     user answers, so progress outlives a turn.

Two reusable templates cover every gate, without any goal- or handbook-specific
mapping: ``login`` opens the first gate, ``second_factor`` one that stands
behind another gate.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.compiler._guards import required_gates
from sopilot.language.compiler.rules import recipe_act, verifier_call
from sopilot.language.diagnostics import InternalBug
from sopilot.language.handbook import Action, Predicate
from sopilot.language.program.model import Act, Ask, Function, Kind, ReturnStep, Step, Unknown

LOGIN, SECOND_FACTOR = "login", "second_factor"


def template_for(
    predicate: Predicate, actions: Mapping[str, Action], predicates: Mapping[str, Predicate]
) -> str:
    if predicate.established_by is None:
        raise InternalBug(f"`{predicate.name}` is not a gate")
    requires = actions[predicate.established_by.action].requires
    return SECOND_FACTOR if required_gates(requires, predicates) else LOGIN


def gate_function(
    name: str,
    predicate: Predicate,
    actions: Mapping[str, Action],
    predicates: Mapping[str, Predicate],
    offered: frozenset[str],
) -> Function:
    template = template_for(predicate, actions, predicates)
    call = predicate.established_by
    assert call is not None
    action, arguments = verifier_call(call, actions[call.action], predicate)
    wants = tuple(dict.fromkeys(term.name for _, term in arguments if isinstance(term, Unknown)))
    steps: list[Step] = []
    if wants:
        steps.append(Ask("ask", wants))
    steps.append(Act("establish", action, arguments))
    steps.append(ReturnStep("judge"))
    notes: tuple[str, ...] = (f"template: {template}",)
    if call.action not in offered:
        notes = (*notes, f"{call.action} is not offered, so the gate cannot be opened")
    return Function(
        name=name,
        kind=Kind.GATE,
        parameters=predicate.parameters,
        steps=tuple(steps),
        says=predicate.says,
        says_not=predicate.says_not,
        predicate=predicate.name,
        verdict=predicate.verdict,
        remedy=predicate.remedy,
        tells=predicate.tells,
        notes=notes,
        closed_by=recipe_act("close", predicate.closed_by, predicate, actions)
        if predicate.closed_by is not None
        else None,
        principal=predicate.principal,
    )


def done_function(name: str, predicate: Predicate, actions: Mapping[str, Action]) -> Function:
    """A fact of this session: true from the success of a call, which nobody makes for it."""
    assert predicate.done is not None
    return Function(
        name=name,
        kind=Kind.GATE,
        parameters=predicate.parameters,
        steps=(ReturnStep("judge"),),
        says=predicate.says,
        says_not=predicate.says_not,
        predicate=predicate.name,
        fallbacks=((recipe_act("done", predicate.done, predicate, actions),),),
        remedy=predicate.remedy,
        tells=predicate.tells,
    )
