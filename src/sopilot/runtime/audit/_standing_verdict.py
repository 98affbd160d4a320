"""Whether a verdict of a process may be taken over at a later check, by the trace alone."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.program.model import Ask, Check, Unknown
from sopilot.runtime.audit._audit_state import AuditState
from sopilot.runtime.audit._call_reading import moment_of
from sopilot.runtime.audit._evidence import covered, is_admissible
from sopilot.runtime.audit._leaf_reading import judged_for
from sopilot.runtime.audit._moment import Moment
from sopilot.runtime.audit._recipe_answers import disturbed_by
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._session_calls import newest_answer
from sopilot.runtime.audit._state import BoundSlot, FrameView, ProcessView, SeenResult
from sopilot.runtime.vm.values import JSON


def standing_verdict(
    run: AuditState, process: ProcessView, step: Check, values: Mapping[str, JSON]
) -> BoundSlot | None:
    """The latest verdict for the same values, if its evidence is whole, newest and fresh."""
    code = process.program.functions[step.function]
    given = judged_for(process, code, values)
    if not code.judges or given is None or given.holds is None:
        return None
    if code.recipes:
        results = [one for one in process.results if one.seq in given.evidence]
        moment = moment_of(run, process, process.known)
        if not all(_is_current(moment, one) for one in results):
            return None
        frame = FrameView(code, code.first(), dict(values), step.slot, -1, "")
        frame.borrowed = list(given.evidence)
        answered = [one for one in results if one.ok]
        failed = not _asks(code) and any(
            not one.ok and is_admissible(process, frame, one) for one in results
        )
        if not failed and not covered(process, frame, answered):
            return None
    elif _asks(code):
        return None
    return BoundSlot(given.holds, given.evidence, given.seq, given.function)


def _is_current(moment: Moment, result: SeenResult) -> bool:
    newest = newest_answer(moment.calls, result.action, result.arguments)
    return (
        newest is not None
        and newest.answered == result.seq
        and disturbed_by(moment, newest) is None
    )


def _asks(code: ResolvedFunction) -> bool:
    """What only the user said may be another by now."""
    return any(isinstance(step, Ask) for step in code.function.steps) or any(
        isinstance(term, Unknown) for act in code.acts for _, term in act.arguments
    )
