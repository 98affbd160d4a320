"""Where verdicts lead: tried by the machine on the configuration at hand, and thrown away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sopilot.language.program.model import Kind, ReturnStep
from sopilot.runtime.agent.arms._view import View
from sopilot.runtime.vm import Configuration, Operation, Position, Start
from sopilot.runtime.vm import Return as ReturnOperation

MOST_VERDICTS: Final = 24
"""Verdicts that are tried both ways for one request."""
_AT = 0.0


@dataclass(eq=False, slots=True)
class Point:
    """Where the model has to act. ``ways`` says where its verdict leads, as far as that was
    tried: through verdicts that need no tool, up to the next call of one."""

    configuration: Configuration
    here: Position
    ways: list[tuple[bool, Point]] = field(default_factory=list)


def nowhere(here: Position) -> bool:
    return False


def explore(
    view: View, points: Sequence[Point], *, stop: Callable[[Position], bool] = nowhere
) -> None:
    """Try verdicts at these points and at those behind them, the nearest first. Nothing is
    said about ways to positions at which ``stop``."""
    waiting = deque(points)
    for _ in range(MOST_VERDICTS):
        if not waiting:
            return
        point = waiting.popleft()
        for holds in (True, False):
            led = point_after(view, point.configuration, ReturnOperation(holds))
            if led is not None and not stop(led.here):
                point.ways.append((holds, led))
                if is_verdict(led.here):
                    waiting.append(led)


def point_after(view: View, configuration: Configuration, operation: Operation) -> Point | None:
    """Where the operation and the machine's own transitions would lead; nothing is recorded."""
    if isinstance(operation, Start):
        led = view.machine.suppose(configuration, operation, at=_AT)
    else:
        outcome = view.machine.step(configuration, operation, at=_AT)
        led = outcome.configuration if outcome.accepted else None
    if led is None:
        return None
    settled = view.machine.settle(led, view.automation, at=_AT, judge=view.judge).configuration
    here = view.machine.position(settled)
    return Point(settled, here) if here is not None else None


def is_verdict(here: Position) -> bool:
    return (
        isinstance(here.step, ReturnStep)
        and here.step.holds is None
        and here.layout.function.kind in (Kind.RULE, Kind.GATE)
    )
