"""The hard guard: whether an irreversible call may run now. Pure.

Soft everywhere else. What cannot be evaluated holds the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sopilot.language.diagnostics import SopilotError
from sopilot.language.program import Act, FailStep, Guarded, Literal, Program
from sopilot.language.render import quote_value
from sopilot.runtime.vm import JSON, Configuration, Machine, Position
from sopilot.runtime.vm.completing import completed
from sopilot.runtime.vm.moves import unmet_checks
from sopilot.runtime.vm.terms import fits_act, plain_arguments, value_of
from sopilot.runtime.vm.values import MISSING, holds_stand_in, same


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a call must wait: ``awaits`` is ``root`` or ``outcome``; ``why`` is for the model."""

    awaits: str
    why: str


def guarded_actions(programs: Mapping[str, Program]) -> dict[str, Guarded]:
    """Action → its guard. Programs of one handbook agree; where they do not, the stricter holds."""
    found: dict[str, Guarded] = {}
    for program in programs.values():
        for guarded in program.guarded:
            earlier = found.get(guarded.action)
            if earlier is None or earlier == guarded:
                found[guarded.action] = guarded
                continue
            stricter = guarded if guarded.needed > earlier.needed else earlier
            found[guarded.action] = replace(
                stricter,
                recheck=guarded.recheck or earlier.recheck,
                when=guarded.when if guarded.when == earlier.when else None,
            )
    return found


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
        return Hold("root", f"the guard of `{action}` could not be evaluated: {problem!r}")


def _pending(configuration: Configuration, action: str) -> Hold | None:
    for call_id, pending in configuration.pending.items():
        if pending.action == action:
            return Hold(
                "outcome",
                f"nobody knows yet how call `{call_id}` of `{action}` ended; "
                "it must not be made twice",
            )
    return None


def _root(
    machine: Machine,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    amended: bool,
) -> Hold | None:
    here = machine.position(configuration)
    if here is None:
        return Hold("root", f"`{action}` needs a running process that accepts it: start its goal")
    if len(here.process.frames) != 1:
        return Hold(
            "root",
            f"`{action}` waits for `{here.process.goal}` to accept; {here.frame.path} is "
            f"still open{_asked_for(here)}: finish its checks and return",
        )
    step = here.step
    if isinstance(step, FailStep):
        unmet = ", ".join(f"`{name}`" for name in unmet_checks(here)) or "what it requires"
        return Hold(
            "root",
            f"`{action}` waits for `{here.process.goal}` to accept, and {unmet} is not met: "
            f"refuse with `fail`, or start it again and verify ({here.frame.place})",
        )
    if not isinstance(step, Act) or not step.goal or step.action != action:
        return Hold(
            "root",
            f"`{action}` waits for `{here.process.goal}` to accept; it stands at "
            f"{here.frame.place}: the steps before the goal come first",
        )
    return _arguments(here, step, arguments, amended)


def _asked_for(here: Position) -> str:
    """The call at the cursor, with the values that the program has for it."""
    if not isinstance(here.step, Act):
        return ""
    known = completed(here, here.step.action, {}, {})
    values = ", ".join(f"{name}={quote_value(value)}" for name, value in known.items())
    return f" and asks for `{here.step.action}({values})`"


def _arguments(
    here: Position, step: Act, arguments: Mapping[str, JSON], amended: bool
) -> Hold | None:
    inputs = [parameter for parameter, _ in step.arguments]
    for name in arguments:
        # Nothing was checked about it, and a tool may do anything with it.
        if name not in inputs:
            named = ", ".join(f"`{one}`" for one in inputs) or "nothing"
            return Hold(
                "root",
                f"`{name}` is no input of `{step.action}` in the handbook, so nobody checked it: "
                f"call it without; it takes {named}",
            )
        if holds_stand_in(arguments[name]):
            return Hold(
                "root",
                f"`{name}` holds something that no tool may be given as it was sent: a value that "
                "JSON cannot say, or that has the form of a withheld one; call it with a plain one",
            )
    if amended:
        return _other_act(step, arguments)
    if fits_act(step, step.action, arguments, here.layout, here.frame, here.process.known):
        return None
    for parameter, term in plain_arguments(step.arguments):
        value = value_of(term, here.layout, here.frame, here.process.known)
        if value is MISSING or value is None:
            continue
        if parameter not in arguments or not here.layout.agree(value, arguments[parameter]):
            return Hold(
                "root",
                f"`{step.action}` was checked for another `{parameter}`: "
                "call it with the checked values, or start the goal again with the new ones",
            )
    return Hold("root", f"`{step.action}` was checked for other arguments")


def _other_act(step: Act, arguments: Mapping[str, JSON]) -> Hold | None:
    """People choose values. Which inputs have one value the procedure says: with two it would be
    an act that nothing was checked for."""
    chosen: dict[str, JSON] = {}
    for parameter, term in plain_arguments(step.arguments):
        if isinstance(term, Literal):
            continue
        given = arguments.get(parameter)
        if not same(given, chosen.setdefault(term.name, given)):
            return Hold(
                "root",
                f"`{parameter}` of `{step.action}` must be the same as another input of it: "
                "amend it so, or reject it",
            )
    return None
