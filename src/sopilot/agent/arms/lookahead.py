"""What follows a verdict, told before it is given.

A model that knows what its verdict leads to can give it and act on it in one
message. The continuation is worked out by the machine itself, on the
configuration at hand, and goes no further than the next call of a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from sopilot.agent.arms.machine_state import (
    MOST_EVIDENCE,
    gathered,
    next_move,
    shown_value,
)
from sopilot.agent.arms.view import View, known_values
from sopilot.program.model import Ask, Kind, Return
from sopilot.render.frame import purpose
from sopilot.session.protocols import JSON
from sopilot.vm import Configuration, Operation, Position, Start
from sopilot.vm import Return as ReturnOperation

AFTER: Final = "After "
JUDGE: Final = "judge "
EITHER: Final = "true or false"
DEEPEST: Final = 6
"""Verdicts in a row that are told in advance."""
MOST_LINES: Final = 12

_TRUTHS = ((True, "true"), (False, "false"))
_AT = 0.0
_OPEN = "\0open:"


def verdict_lookahead(view: View) -> list[str]:
    """A line for every way to go on from a verdict, where there is ground for one: at the
    verdict itself, after a call that failed, and after a user who could not help."""
    here = view.here
    if here is None or not (_is_verdict(here) or _has_tried(here)):
        return []
    return list(_lines(_ways(view, view.configuration, [MOST_LINES], DEEPEST)))


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


@dataclass(slots=True)
class _Way:
    """Where one verdict leads: the next move, and the ways on if that is a verdict again."""

    word: str
    move: str
    ways: list[_Way] = field(default_factory=list)


def _ways(view: View, configuration: Configuration, left: list[int], depth: int) -> list[_Way]:
    """``left`` counts down the lines that may still be told."""
    found: list[_Way] = []
    deeper: list[tuple[_Way, Configuration]] = []
    for holds, word in _TRUTHS:
        led = _led(view, configuration, ReturnOperation(holds))
        here = view.machine.position(led) if led is not None else None
        if led is None or here is None:
            continue
        left[0] -= 1
        if _is_verdict(here):
            found.append(_Way(word, _judged(view, here)))
            deeper.append((found[-1], led))
        else:
            found.append(_Way(word, next_move(here, known_values(here))))
    for way, led in deeper:
        if depth > 1 and left[0] >= 2:
            way.ways = _ways(view, led, left, depth - 1)
    if len(found) == 2 and (found[0].move, found[0].ways) == (found[1].move, found[1].ways):
        found = [_Way(EITHER, found[0].move, found[0].ways)]
    return found


def _lines(ways: list[_Way], path: tuple[str, ...] = ()) -> Iterator[str]:
    for way in ways:
        here = (*path, way.word)
        yield f"{AFTER}{', '.join(here)}: {way.move}"
        yield from _lines(way.ways, here)


def _judged(view: View, here: Position) -> str:
    """A verdict on evidence that is there already, with all that is needed to give it."""
    function = here.layout.function
    known = known_values(here)
    values: dict[str, JSON] = {n: known[n] for n in function.parameters if n in known}
    evidence = " ".join(f"#{seq}" for seq in gathered(here)[-MOST_EVIDENCE:])
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
