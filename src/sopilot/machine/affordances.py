"""Operations that would fit now, and the arguments that the program has for a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sopilot.handbook.requirements import Constant
from sopilot.machine.evidence import frame_results, is_done, next_wanted
from sopilot.machine.layout import Position, Programs, locate
from sopilot.machine.moves import NEXT, is_true
from sopilot.machine.state import Configuration
from sopilot.machine.terms import known_arguments, plain_arguments
from sopilot.program.model import (
    Act,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    ReturnStep,
    Step,
)
from sopilot.program.walk import passed_values
from sopilot.values.json import JSON, Fields, canonical, plain, same


def completed(
    here: Position, action: str, arguments: dict[str, JSON], *, enters: bool = False
) -> dict[str, JSON]:
    """Add the arguments that were left out, if the program asks for such a call here and knows
    them. Arguments that were written stay. With ``enters`` the machine enters functions by itself,
    and the values that the check at the cursor would pass on count as known."""
    for act in _asked_for(here, action):
        known = _known(here, act)
        if all(name not in known or same(known[name], arguments[name]) for name in arguments):
            return {**known, **arguments}
    passed = _passed_on(here, action) if enters else {}
    if all(name not in passed or same(passed[name], arguments[name]) for name in arguments):
        return {**passed, **arguments}
    return arguments


def _passed_on(here: Position, action: str) -> dict[str, JSON]:
    """The values that the check at the cursor passes to this action, if it is called first."""
    step: Step | None = here.step
    values = {**here.process.known, **here.frame.locals}
    while isinstance(step, Check):
        values = passed_values(step.arguments, values, {})
        callee = here.program.functions[step.function]
        step = next((item for item in callee.steps.values() if not isinstance(item, Ask)), None)
    if not isinstance(step, Act) or step.action != action:
        return {}
    passed = passed_values(plain_arguments(step.arguments), values, {})
    return {name: value for name, value in passed.items() if value is not None}


def _asked_for(here: Position, action: str) -> list[Act]:
    """The one at the cursor first, then those of the rule that were not made yet."""
    step = here.layout.steps[here.layout.past_asking(here.frame.cursor)]
    acts = [step] if isinstance(step, Act) and step.action == action else []
    if here.layout.soft:
        done = [frame_result for frame_result in frame_results(here) if frame_result.ok]
        others = [act for act in here.layout.recipe_acts if act.action == action]
        acts += sorted(others, key=lambda act: is_done(here, act, done))
    return acts


def _known(here: Position, act: Act) -> Mapping[str, JSON]:
    if here.layout.linked:
        wanted = next_wanted(here, act)
        return wanted.arguments if wanted is not None else {}
    return known_arguments(here, plain_arguments(act.arguments))[0]


Shape = Fields


def fits(programs: Programs, configuration: Configuration) -> list[Shape]:
    """Operations by name with what is known of their fields; ``missing`` has no value yet.

    ``domain_call`` and ``ask_user`` are not operations of the tool: the executor
    calls the action, or speaks to the user.
    """
    here = locate(programs, configuration)
    if here is None:
        return [
            {
                "operation": "start",
                "goal": goal,
                "arguments": list(layout.entry.function.parameters),
            }
            for goal, layout in programs.layouts.items()
        ]
    shapes: dict[bytes, Shape] = {}
    for shape in (*_at_cursor(here), *_anywhere(here)):
        messages = {key: value for key, value in shape.items() if key != "instead"}
        shapes.setdefault(canonical(plain(messages)), shape)
    return list(shapes.values())


def _at_cursor(here: Position) -> Iterator[Shape]:
    step = here.step
    if isinstance(step, Check):
        values, missing = known_arguments(here, step.arguments)
        yield {
            "operation": "call",
            "function": step.function,
            "arguments": values,
            "missing": _named_here(step, missing),
        }
    elif isinstance(step, Branch):
        holds = is_true(step.when, here.frame.slots)
        yield {"operation": "select_branch", "option": "then" if holds else "otherwise"}
    elif isinstance(step, Choose):
        yield from (
            {"operation": "select_branch", "option": option.name, "says": option.says}
            for option in step.options
        )
    elif isinstance(step, Act):
        yield _act(here, step)
        if here.layout.soft:
            yield from (
                {**_act(here, act), "instead": True}
                for recipe in here.layout.function.fallbacks
                for act in recipe
            )
    elif isinstance(step, Ask):
        wants = [
            name
            for name in step.wants
            if here.frame.locals.get(name, here.process.known.get(name)) is None
        ]
        yield {"operation": "ask_user", "wants": wants or list(step.wants)}
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        if isinstance(behind, Act):
            yield _act(here, behind)
        yield {"operation": "select_branch", "option": NEXT}
    elif isinstance(step, Do):
        yield from ({"operation": "domain_call", "action": action} for action in step.uses)
        yield {"operation": "select_branch", "option": NEXT}
    elif isinstance(step, Emit):
        yield {"operation": "emit_artifact", "name": step.artifact}
    elif isinstance(step, CompleteStep):
        yield {"operation": "complete"}


def _named_here(step: Check, missing: Iterable[str]) -> list[str]:
    """The missing parameters by the names that their values have in the calling function; `call`
    takes them unless the called function has a parameter of that name."""
    parameters = {name for name, _ in step.arguments}
    names = {
        name: term.name
        for name, term in step.arguments
        if not isinstance(term, Constant) and term.name not in parameters
    }
    return [names.get(name, name) for name in missing]


def _anywhere(here: Position) -> Iterator[Shape]:
    step = here.step
    condition = step.holds if isinstance(step, ReturnStep) else None
    if condition is not None:
        yield {"operation": "return", "holds": is_true(condition, here.frame.slots)}
    elif here.layout.soft or isinstance(step, ReturnStep):
        yield {"operation": "return", "missing": ["holds"]}
    yield {"operation": "fail"}


def _act(here: Position, step: Act) -> Shape:
    shape: Shape = {"operation": "domain_call", "action": step.action}
    if not here.layout.linked:
        return {**shape, **_arguments(here, plain_arguments(step.arguments))}
    wanted = next_wanted(here, step)
    if wanted is None:
        return {**shape, "arguments": {}, "missing": [name for name, _ in step.arguments]}
    return {**shape, "arguments": dict(wanted.arguments), "missing": list(wanted.open)}


def _arguments(here: Position, arguments: Arguments) -> Shape:
    values, missing = known_arguments(here, arguments)
    return {"arguments": values, "missing": missing}
