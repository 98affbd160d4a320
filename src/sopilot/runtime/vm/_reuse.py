"""What a check need not ask again: in its frame, and in the whole process.

In the frame: a slot that is bound. In the process: a gate that is open, and, where a run
allows it, a verdict on the same rule for the same values whose evidence is still whole, newest
and fresh. Neither is a proof for a guarded action: that is made anew at the act.
"""

from __future__ import annotations

from sopilot.language.program.model import Check, Kind
from sopilot.runtime.vm.evidence import admissible, frame_answers
from sopilot.runtime.vm.freshness import is_current
from sopilot.runtime.vm.moves import rule_key
from sopilot.runtime.vm.position import Position
from sopilot.runtime.vm.state import Bound, Frame
from sopilot.runtime.vm.terms import known_arguments
from sopilot.runtime.vm.values import JSON


def bound_already(here: Position, step: Check) -> tuple[Bound, str] | None:
    """The result of the check that holds without asking, and on what ground."""
    bound = here.frame.slots.get(step.slot)
    if bound is not None:
        return bound, "slot already bound in this frame"
    if not here.process.gates or (
        here.program.functions[step.function].function.kind is not Kind.GATE
    ):
        return None
    values, missing = known_arguments(step.arguments, here.layout, here.frame, here.process.known)
    if missing:
        return None
    bound = here.process.gates.get(rule_key(step.function, values))
    return None if bound is None else (bound, "gate already established in this process")


def judged_already(here: Position, step: Check) -> tuple[Bound, str] | None:
    """The process's verdict on the same rule for the same values, if it still stands."""
    if not here.process.verdicts:
        return None
    values, missing = known_arguments(step.arguments, here.layout, here.frame, here.process.known)
    if missing:
        return None
    bound = here.process.verdicts.get(rule_key(step.function, values))
    if bound is None or bound.holds is None or not _stands(here, step, values, bound):
        return None
    return bound, f"judged for the same values already (#{bound.producer})"


def _stands(here: Position, step: Check, values: dict[str, JSON], bound: Bound) -> bool:
    layout = here.program.functions[step.function]
    if not layout.recipes:
        # Judged by its values alone; what only the user said may be another now.
        return not layout.learnable
    cited = frozenset(bound.evidence)
    results = [one for one in here.process.results if one.seq in cited]
    if not all(is_current(here.programs, here.configuration, one) for one in results):
        return False
    frame = Frame(
        step.function,
        layout.first,
        values,
        {},
        step.slot,
        here.configuration.next_seq,
        f"{here.frame.path}/{step.function}",
        (),
        bound.evidence,
    )
    inside = Position(
        here.configuration,
        here.process,
        frame,
        here.program,
        layout,
        layout.steps[layout.first],
        here.programs,
    )
    if frame_answers(inside) is not None:
        return True
    # What failed would fail again, unless the user gives another value this time.
    return not layout.learnable and any(not one.ok and admissible(inside, one) for one in results)
