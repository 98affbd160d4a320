"""The goal of a procedure: the names it is started with, its call, its guard, its refusal."""

from __future__ import annotations

from sopilot.language.handbook import (
    Action,
    Binding,
    Constant,
    Handbook,
    Input,
    Name,
    Procedure,
    Scalar,
    Term,
    names_in,
)
from sopilot.language.handbook.translated import Translated
from sopilot.language.program.model import (
    Argument,
    Arguments,
    FailStep,
    Guarded,
    Literal,
    Local,
    Unknown,
)


def start_names(terms: Binding, procedure: Procedure) -> tuple[str, ...]:
    """The names the process is started with: the goal's inputs, then the tree's own."""
    names = dict.fromkeys([term.name for _, term in terms if isinstance(term, Name)])
    names.update(dict.fromkeys([item.name for item in procedure.inputs]))
    names.update(dict.fromkeys(names_in(procedure.requires)))
    for one in procedure.computed:
        names.pop(one.name, None)
    return tuple(names)


def goal_arguments(terms: Binding, scope: frozenset[str]) -> Arguments:
    return tuple([(name, argument_of(term, scope)) for name, term in terms])


def own(procedure: Procedure, goal: Action) -> str:
    """What of a procedure beyond its tree and its goal makes a program."""
    own = (procedure.inputs, procedure.computed, procedure.confirm, procedure.otherwise)
    return repr((own, goal.confirm))


def refusal(handbook: Handbook, otherwise: str) -> FailStep:
    """What follows: another procedure, words, or nothing."""
    if otherwise in handbook.procedures:
        told = {"en": f"then start `{otherwise}`", "zh": f"然后 start `{otherwise}`"}
        return FailStep("refuse", Translated(told), otherwise)
    if not otherwise:
        return FailStep("refuse")
    told = {"en": f"tell the user: {otherwise}", "zh": f"告诉用户：{otherwise}"}
    return FailStep("refuse", Translated(told))


def goal_terms(goal: Action, procedure: Procedure) -> Binding:
    """Every input of the goal; one that the procedure does not mention keeps its own name."""
    given = dict(procedure.arguments)
    return tuple([(one.name, given.get(one.name) or Name(one.name)) for one in goal.inputs])


def inputs_by_name(terms: Binding, goal: Action, procedure: Procedure) -> dict[str, Input]:
    """What is known of the names of a procedure: its own inputs, and those of the goal that they
    become."""
    inputs = {item.name: item for item in goal.inputs}
    become = {term.name: inputs[name] for name, term in terms if isinstance(term, Name)}
    return become | {item.name: item for item in procedure.inputs}


def argument_of(term: Term, scope: frozenset[str]) -> Argument:
    if isinstance(term, Constant):
        value: Scalar = term.value
        return Literal(value)
    return Local(term.name) if term.name in scope else Unknown(term.name)


def guard_of(action: Action) -> Guarded:
    approval = action.approval
    if approval is None:
        return Guarded(action.name, recheck=action.recheck)
    return Guarded(
        action.name,
        approval.roles,
        approval.needed,
        approval.expires_seconds,
        action.recheck,
        approval.when,
    )
