"""The grade of a verdict at the moment in which it is given."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.language.program.model import Kind
from sopilot.runtime.proof._grade import Grade
from sopilot.runtime.proof._leaf import Prover
from sopilot.runtime.vm.moves import parameter_values
from sopilot.runtime.vm.operations import Return
from sopilot.runtime.vm.position import Position, Programs
from sopilot.runtime.vm.values import Judge


def grade_of_return(
    programs: Programs, here: Position, operation: Return, evidence: Sequence[int], judge: Judge
) -> Grade | None:
    """The grade of a verdict that is returned on ``evidence``; ``None`` where none is judged."""
    function = here.layout.function
    if not here.layout.soft or operation.holds is None:
        return None
    prover = Prover(programs, here.configuration, here.process, here.process.known, judge)
    values = parameter_values(here, here.frame)
    if operation.arguments:  # A computed value comes with the verdict.
        given = {**operation.arguments, **values}
        values = {name: given[name] for name in function.parameters if name in given}
    if function.kind is Kind.RULE and function.verdict is None:
        covered = prover.covers(here.layout, values, frozenset(evidence))
        return Grade.ATTESTED if covered else Grade.CLAIMED
    found = prover.leaf(function.name, values)
    return found.grade if found.holds is operation.holds else Grade.CLAIMED
