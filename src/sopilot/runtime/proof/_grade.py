"""How good a verdict is."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from sopilot.language.program.model import Kind
from sopilot.runtime.vm.evidence import bind_evidence
from sopilot.runtime.vm.operations import Return
from sopilot.runtime.vm.position import Position, Programs

if TYPE_CHECKING:
    from sopilot.runtime.proof._leaf import Judge


class Grade(StrEnum):
    PROVEN = "proven"
    """P1–P7 by the machine, or a gate by its action's success."""
    STATED = "stated"
    """The same, of what the user said when asked: that it was said, not that it is so."""
    ATTESTED = "attested"
    """Judged by the executor, on evidence that meets P1–P5 and P7."""
    CLAIMED = "claimed"
    """Anything else."""


def grade_of_return(
    programs: Programs, here: Position, operation: Return, judge: Judge
) -> Grade | None:
    """The grade of a verdict that is about to be returned; ``None`` where none is judged."""
    from sopilot.runtime.proof._leaf import Prover

    function = here.layout.function
    if not here.layout.soft or operation.holds is None:
        return None
    prover = Prover(programs, here.configuration, here.process, here.process.known, judge)
    have = {**operation.arguments, **here.frame.locals}  # a computed value comes with the verdict
    values = {name: have[name] for name in function.parameters if name in have}
    if function.kind is Kind.RULE and function.verdict is None:
        cited = frozenset(bind_evidence(here, operation.evidence).evidence)
        return Grade.ATTESTED if prover.covers(here.layout, values, cited) else Grade.CLAIMED
    found = prover.leaf(function.name, values)
    return found.grade if found.holds is operation.holds else Grade.CLAIMED
