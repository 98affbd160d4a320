"""What would fit now: the answer to an operation that does not, and a frame's affordances."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.language.program.model import (
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
)
from sopilot.runtime.vm.evidence import next_wanted
from sopilot.runtime.vm.moves import NEXT, truth
from sopilot.runtime.vm.position import Position, Programs, locate
from sopilot.runtime.vm.state import Configuration
from sopilot.runtime.vm.terms import known_arguments, plain_arguments
from sopilot.runtime.vm.values import Fields, canonical, plain

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
    found: dict[bytes, Shape] = {}
    for shape in (*_at_cursor(here), *_anywhere(here)):
        told = {key: value for key, value in shape.items() if key != "instead"}
        found.setdefault(canonical(plain(told)), shape)
    return list(found.values())


def _at_cursor(here: Position) -> Iterator[Shape]:
    step = here.step
    if isinstance(step, Check):
        yield {
            "operation": "call",
            "function": step.function,
            **_arguments(here, step.arguments),
        }
    elif isinstance(step, Branch):
        holds = truth(step.when, here.frame.slots)
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


def _anywhere(here: Position) -> Iterator[Shape]:
    step = here.step
    condition = step.holds if isinstance(step, ReturnStep) else None
    if condition is not None:
        yield {"operation": "return", "holds": truth(condition, here.frame.slots)}
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
    values, missing = known_arguments(arguments, here.layout, here.frame, here.process.known)
    return {"arguments": values, "missing": missing}
