"""Which tool schemas a request carries. What is not offered can still be called by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from sopilot.agent.arms.view import View
from sopilot.program.model import Act, Check, Do, Function, Program
from sopilot.session.protocols import ToolSchema
from sopilot.vm import TOOL_NAME


class Offer(StrEnum):
    """``frame`` sends least and changes the beginning of the prompt with every frame, which
    no prefix cache survives; ``process`` changes it when a process starts or ends."""

    ALL = "all"
    PROCESS = "process"
    FRAME = "frame"


def offered(view: View, schemas: Sequence[ToolSchema], offer: Offer) -> Sequence[ToolSchema]:
    """Without a process everything is offered: nobody knows yet what will be asked."""
    here = view.here
    if here is None or offer is Offer.ALL:
        return schemas
    program = here.source
    if offer is Offer.PROCESS:
        functions = list(program.functions.values())
    else:
        # The callers too: a verdict and the next call come in one message.
        functions = [program.functions[frame.function] for frame in here.process.frames]
        functions += [
            program.functions[name] for function in tuple(functions) for name in _called(function)
        ]
    names = {TOOL_NAME, *(name for function in functions for name in _tools(function, program))}
    return [schema for schema in schemas if schema.name in names]


def _called(function: Function) -> Iterator[str]:
    for step in function.steps:
        if isinstance(step, Check):
            yield step.function


def _tools(function: Function, program: Program) -> Iterator[str]:
    for step in (*function.steps, *(act for recipe in function.fallbacks for act in recipe)):
        if isinstance(step, Act):
            yield step.action
        elif isinstance(step, Do):
            yield from step.uses
