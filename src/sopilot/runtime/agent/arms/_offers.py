"""Which tool schemas a request carries. What is not offered can still be called by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from sopilot.language.program.model import Act, Do, Function
from sopilot.runtime.agent.arms._view import View
from sopilot.runtime.session.protocols import ToolSchema
from sopilot.runtime.vm import STEP_NAMES

_WORD = re.compile(r"\w+")


class Offer(StrEnum):
    """``frame`` sends least and changes the beginning of the prompt with every frame, which
    no prefix cache survives; ``process`` changes it when a process starts or ends."""

    ALL = "all"
    PROCESS = "process"
    FRAME = "frame"


def offered(
    view: View, schemas: Sequence[ToolSchema], offer: Offer, slot: str
) -> Sequence[ToolSchema]:
    """Without a process everything is offered: nobody knows yet what will be asked. A frame
    can use the tools that its slot names."""
    here = view.here
    if here is None or offer is Offer.ALL:
        return schemas
    if offer is Offer.FRAME:
        names = set(_WORD.findall(slot))
    else:
        functions = here.source.functions.values()
        names = {name for function in functions for name in _tools(function)}
    names |= STEP_NAMES
    return [schema for schema in schemas if schema.name in names]


def _tools(function: Function) -> Iterator[str]:
    for step in (*function.steps, *(act for recipe in function.fallbacks for act in recipe)):
        if isinstance(step, Act):
            yield step.action
        elif isinstance(step, Do):
            yield from step.uses
