"""A saved cursor: where a paged session stood at one of its events, and what it had seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.moves import is_true
from sopilot.machine.replay import replay
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    ReturnStep,
)
from sopilot.trace.events import Event

NextMove = tuple[str, str]
"""Operation and name, as in ``("call", "logged_in")`` or ``("return", "")``."""


_MOVED = frozenset({"start", "amend", "call", "return", "domain_result", "select_branch"})


_LONGEST_VALUE = 400


@dataclass(frozen=True, slots=True)
class Cursor:
    """``callers`` has the outermost first; ``licensed`` are the moves that fit at the step;
    ``history`` is what had happened, without a word about the position."""

    case: str
    goal: str
    function: str
    step: str
    results: Mapping[str, bool]
    callers: tuple[str, ...]
    licensed: frozenset[NextMove]
    history: tuple[str, ...]

    @property
    def depth(self) -> int:
        return len(self.callers) + 1


def cursors_of(machine: Machine, events: Sequence[Event], case: str = "") -> list[Cursor]:
    """Every place in which the session waited for its executor, in order."""
    results = []
    for index, event in enumerate(events):
        if event.kind not in _MOVED:
            continue
        after = index + 1
        if after < len(events) and events[after].actor == "machine":
            continue  # the machine was not done yet
        here = machine.position(replay(machine, events[:after]))
        if here is not None:
            results.append(_cursor(here, events[:after], case))
    return results


def _cursor(here: Position, events: Sequence[Event], case: str) -> Cursor:
    frames = here.process.frames
    return Cursor(
        case=case,
        goal=here.process.goal,
        function=here.frame.function,
        step=here.frame.cursor,
        results={slot: bound.holds is True for slot, bound in here.frame.slots.items()},
        callers=tuple(frame.function for frame in frames[:-1]),
        licensed=frozenset(_licensed(here)),
        history=tuple(line for event in events for line in _told(event)),
    )


def _licensed(here: Position) -> list[NextMove]:
    step = here.step
    if isinstance(step, Ask):
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        asks = [("ask", "")]
        return [*asks, ("tool", behind.action)] if isinstance(behind, Act) else asks
    if isinstance(step, Check):
        return [("call", step.function)]
    if isinstance(step, Act):
        instead = [
            ("tool", act.action) for recipe in here.layout.function.fallbacks for act in recipe
        ]
        return [("tool", step.action), *(instead if here.layout.soft else ())]
    if isinstance(step, Branch):
        chosen = "then" if is_true(step.when, here.frame.slots) else "otherwise"
        return [("select_branch", chosen)]
    if isinstance(step, Choose):
        return [("select_branch", option.name) for option in step.options]
    if isinstance(step, Do):
        return [("select_branch", "next"), *(("tool", action) for action in step.uses)]
    if isinstance(step, Emit):
        return [("emit_artifact", step.artifact)]
    if isinstance(step, ReturnStep):
        return [("return", "")]
    return [("complete" if isinstance(step, CompleteStep) else "fail", "")]


def _told(event: Event) -> list[str]:
    """The event as the executor saw it happen. Places, labels and slots stay out."""
    payload = event.payload
    match event.kind:
        case "user_said":
            return [f"user: {_line(payload['text'])}"]
        case "assistant_said":
            return [f"agent: {_line(payload['text'])}"]
        case "start":
            return [f"agent starts the process {payload['goal']}"]
        case "call":
            return [
                f"agent calls the function {payload['function']}({_given(payload['resolved'])})"
            ]
        case "return":
            holds = payload["holds"]
            return ["agent returns" if holds is None else f"agent returns {_word(holds)}"]
        case "select_branch":
            return ["agent goes on at a branch"]
        case "domain_call":
            return [f"agent calls the tool {payload['action']}({_given(payload['arguments'])})"]
        case "domain_result":
            outcome = "succeeds" if payload["ok"] else "fails"
            return [f"the tool {outcome}: {_value(payload['value'])}"]
        case "amend":
            return [f"agent amends {_given(payload['arguments'])}"]
        case "reuse" if "result" in payload:
            return []  # the tool call that it takes over is told already
        case "reuse":
            return [f"{payload['function']} is known to be {_word(payload['holds'])} already"]
        case _:
            return []


def _line(text: object) -> str:
    """Words that are kept back are told as such."""
    return " / ".join(text.split("\n")) if isinstance(text, str) else "(not on record)"


def _given(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _word(holds: object) -> str:
    return "true" if holds else "false"
