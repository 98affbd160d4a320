"""What follows a verdict, told before it is given.

A model that knows what its verdict leads to can give it and act on it in one
message. The continuation is worked out by the machine itself, on the
configuration at hand, and goes no further than the next call of a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sopilot.agent.arms.machine_state import gathered, next_move, shown_value
from sopilot.agent.arms.view import View, known_values
from sopilot.program.model import Ask, Kind, Return
from sopilot.render.frame import purpose
from sopilot.session.protocols import JSON
from sopilot.vm import Configuration, Operation, Position, Start
from sopilot.vm import Return as ReturnOperation

AFTER: Final = "After "
JUDGE: Final = "judge "
EITHER: Final = "true or false"
DEEPEST: Final = 3
"""Verdicts in a row that are told in advance."""

_TRUTHS = ((True, "true"), (False, "false"))
_AT = 0.0
_OPEN = "\0open:"


def verdict_lookahead(view: View) -> list[str]:
    """A line for every way to go on from a verdict, where there is ground for one: at the
    verdict itself, after a call that failed, and after a user who could not help."""
    here = view.here
    if here is None or not (_is_verdict(here) or _has_tried(here)):
        return []
    return list(_after(view, view.configuration, (), DEEPEST))


def start_lookahead(view: View) -> list[str]:
    """A line a goal: what comes first if every value of the request is known."""
    lines = []
    # Open values must not be judged: no verdict is worked out beyond the start.
    view = replace(view, judge=None)
    for goal, program in view.briefing.programs.items():
        names = program.functions[program.entry].parameters
        after = _led(view, view.configuration, Start(goal, {n: _OPEN + n for n in names}))
        here = view.machine.position(after) if after is not None else None
        if here is not None:
            known = {n: v for n, v in known_values(here).items() if not _is_open(v)}
            named = {n: v[len(_OPEN) :] for n, v in known_values(here).items() if _is_open(v)}
            lines.append(f"{AFTER}start {goal}: {next_move(here, known, named)}")
    return lines


def _after(
    view: View, configuration: Configuration, path: tuple[str, ...], left: int
) -> Iterator[str]:
    found: list[tuple[str, list[str]]] = []
    for holds, word in _TRUTHS:
        led = _led(view, configuration, ReturnOperation(holds))
        here = view.machine.position(led) if led is not None else None
        if led is None or here is None:
            continue
        if not _is_verdict(here):
            found.append((word, [next_move(here, known_values(here))]))
        elif left > 1:
            below = list(_after(view, led, (*path, word), left - 1))
            found.append((word, [_judged(view, here), *below]))
        else:
            found.append((word, [_judged(view, here)]))
    if len(found) == 2 and found[0][1] == found[1][1] and len(found[0][1]) == 1:
        found = [(EITHER, found[0][1])]
    for word, (first, *below) in found:
        yield f"{AFTER}{', '.join((*path, word))}: {first}"
        yield from below


def _judged(view: View, here: Position) -> str:
    """A verdict on evidence that is there already, with all that is needed to give it."""
    function = here.layout.function
    known = known_values(here)
    values: dict[str, JSON] = {n: known[n] for n in function.parameters if n in known}
    evidence = " ".join(f"#{seq}" for seq in gathered(here))
    says = " ".join(purpose(function, here.source, view.briefing.language).split())
    return f"{JUDGE}{function.name}({_given(values)}) on {evidence or 'no tool'}: {says}"


def _given(values: dict[str, JSON]) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in values.items())


def _is_verdict(here: Position) -> bool:
    return (
        isinstance(here.step, Return)
        and here.step.holds is None
        and here.layout.function.kind in (Kind.RULE, Kind.GATE)
    )


def _has_tried(here: Position) -> bool:
    if not here.layout.soft:
        return False
    behind_question = any(
        isinstance(step, Ask) and here.layout.past_asking(label) == here.frame.cursor
        for label, step in here.layout.steps.items()
    )
    return bool(gathered(here)) or behind_question


def _led(view: View, configuration: Configuration, operation: Operation) -> Configuration | None:
    """Where the operation and the machine's own transitions would lead; nothing is recorded."""
    outcome = view.machine.step(configuration, operation, at=_AT)
    if not outcome.accepted:
        return None
    return view.machine.settle(
        outcome.configuration, view.automation, at=_AT, judge=view.judge
    ).configuration


def _is_open(value: JSON) -> bool:
    return isinstance(value, str) and value.startswith(_OPEN)
