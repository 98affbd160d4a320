"""The guard: whether an irreversible call may run now. Pure.

An error during the evaluation holds the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sopilot.handbook.requirements import Constant
from sopilot.machine.affordances import completed
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.moves import blamed, names_of
from sopilot.machine.state import Configuration
from sopilot.machine.terms import fits_act, plain_arguments, value_at
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import SopilotError
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    CompleteStep,
    FailStep,
    ReturnStep,
)
from sopilot.proof.licence import Licence, license_call
from sopilot.values.json import JSON, MISSING, Judge, holds_stand_in, same
from sopilot.values.text import quote_value


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a call must wait: ``awaits`` is ``root`` or ``outcome``; ``why`` is for the model."""

    awaits: str
    why: str


def _held(code: str, **fields: object) -> Hold:
    """The root of the process doesn't accept the call."""
    return Hold("root", sentence(code, **fields))


def hold_reason(
    machine: Machine,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    *,
    amended: bool = False,
) -> Hold | None:
    """``None`` when the root accepts this very call; ``amended`` arguments need not be the ones
    that it was checked for."""
    try:
        return _pending(configuration, action) or _root(
            machine, configuration, action, arguments, amended
        )
    except (SopilotError, LookupError, TypeError, ValueError, AttributeError) as problem:
        return _held("not-evaluated", action=action, problem=repr(problem))


def license_here(here: Position, arguments: Mapping[str, JSON], judge: Judge) -> Licence:
    """The licence for the goal action at the cursor. An error proves nothing."""
    try:
        return license_call(here, arguments, judge)
    except (SopilotError, LookupError, TypeError, ValueError, AttributeError) as problem:
        kind = type(problem).__name__
        # Its cause is unknown: with the next answer it counts as another problem.
        answers = (
            item.seq for some in here.configuration.answers.values() for item in some.values()
        )
        fact: dict[str, JSON] = {"problem": kind, "after": max(answers, default=-1)}
        return Licence(sentence("proof-not-evaluated", kind=kind), facts=(fact,))


def _pending(configuration: Configuration, action: str) -> Hold | None:
    for call_id, pending in configuration.pending.items():
        if pending.action == action:
            return Hold("outcome", sentence("outcome-open", call=call_id, action=action))
    return None


def _root(
    machine: Machine,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    amended: bool,
) -> Hold | None:
    if action not in machine.programs.goal_actions:
        return _held("no-procedure", action=action)
    here = machine.position(configuration)
    if here is None:
        programs = machine.programs.layouts.items()
        goals = [f"`{goal}`" for goal, item in programs if action in item.goal_actions]
        return _held("start-first", action=action, goals=" or ".join(goals))
    if len(here.process.frames) != 1:
        return _held(
            "checks-first", action=action, function=here.frame.function, first=_first(here)
        )
    step = here.step
    if isinstance(step, FailStep):
        unmet = names_of(blamed(here.layout.function, here.frame.slots))
        names = ", ".join(f"`{name}`" for name in unmet) or sentence("what-it-requires")
        return _held("unmet", action=action, names=names)
    if not isinstance(step, Act) or not step.goal or step.action != action:
        return _held("not-asked-for", goal=here.process.goal, action=action, first=_first(here))
    return _arguments(here, step, arguments, amended)


def _first(here: Position) -> str:
    """The next step of the program, in words that fit every tool list."""
    step = here.step
    if isinstance(step, Ask):
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        step = behind if isinstance(behind, Act) else step
    if isinstance(step, Act):
        known = completed(here, step.action, {})
        values = ", ".join(
            f"{name}={quote_value(known[name]) if name in known else '…'}"
            for name, _ in step.arguments
        )
        return sentence("first-call", call=f"{step.action}({values})")
    if isinstance(step, Ask):
        return sentence("first-ask", names=", ".join(f"`{name}`" for name in step.wants))
    if isinstance(step, Check):
        return sentence("first-check", function=step.function)
    if isinstance(step, ReturnStep):
        return sentence("first-verdict", function=here.frame.function)
    if isinstance(step, CompleteStep):
        return sentence("first-complete")
    return sentence("first-step", label=step.label)


def _arguments(
    here: Position, step: Act, arguments: Mapping[str, JSON], amended: bool
) -> Hold | None:
    inputs = [parameter for parameter, _ in step.arguments]
    for name in arguments:
        # Nothing was checked about it, and a tool may do anything with it.
        if name not in inputs:
            named = ", ".join(f"`{item}`" for item in inputs) or sentence("nothing")
            return _held("no-input", name=name, action=step.action, names=named)
        if holds_stand_in(arguments[name]):
            return _held("stand-in", name=name)
    if amended:
        return _other_act(step, arguments)
    if fits_act(here, step, step.action, arguments):
        return None
    for parameter, term in plain_arguments(step.arguments):
        value = value_at(here, term)
        if value is MISSING or value is None:
            continue
        if parameter not in arguments or not same(value, arguments[parameter]):
            return _held("checked-for-another", action=step.action, name=parameter)
    return _held("checked-for-others", action=step.action)


def _other_act(step: Act, arguments: Mapping[str, JSON]) -> Hold | None:
    """People choose values. Which inputs have one value the procedure says: with two it would be
    an act that nothing was checked for."""
    chosen: dict[str, JSON] = {}
    for parameter, term in plain_arguments(step.arguments):
        if isinstance(term, Constant):
            continue
        value = arguments.get(parameter)
        if not same(value, chosen.setdefault(term.name, value)):
            return _held("must-be-the-same", name=parameter, action=step.action)
    return None
