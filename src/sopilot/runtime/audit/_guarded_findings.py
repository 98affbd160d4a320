"""Findings about guarded calls: carried out unproven, or told otherwise by the guard."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import Severity
from sopilot.language.handbook import BUILT_IN
from sopilot.language.program.model import Kind
from sopilot.runtime.audit._approvals import decided_by_people
from sopilot.runtime.audit._audit_state import AuditState, HeldRequest
from sopilot.runtime.audit._call_reading import CallReading, read_call
from sopilot.runtime.audit._moment import AuditGrade
from sopilot.runtime.audit._state import PendingCall, ProcessView
from sopilot.runtime.trace import words_of
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, spell


def hold(run: AuditState, event: Event, details: Mapping[str, JSON]) -> None:
    """A call was held for people: what was in doubt then, and whether anything was."""
    action, arguments = str(details.get("action", "")), details.get("arguments")
    process = run.process
    if not isinstance(arguments, Mapping):
        return
    reading = read_call(run, process, action, arguments) if process is not None else None
    run.requests[str(details.get("call_id", ""))] = HeldRequest(
        action,
        dict(arguments),
        process.id if process is not None else None,
        reading.keys if reading is not None else frozenset(),
    )
    if details.get("why") and reading is not None and not reading.doubts:
        run.find(
            "guard-disagrees",
            event,
            f"`{action}` was held as unproven, the trace shows it {reading.grade}",
            process=process,
            severity=Severity.WARNING,
            action=action,
            held=words_of(details.get("why")),
        )


def judge_proof(run: AuditState, event: Event, call: PendingCall, process: ProcessView) -> None:
    """Findings about a guarded call at its step: unproven, or told otherwise by the guard."""
    guarded = process.program.guarded.get(call.action)
    if guarded is None:
        return
    reading = read_call(run, process, call.action, call.arguments)
    if reading is None:
        return
    _compare_licence(run, event, call, process, reading)
    if guarded.recheck and not reading.doubts:
        _judge_rereading(run, event, call, process, reading)
    request = run.requests.get(str(event.payload.get("call_id")))
    if (
        request is not None
        and request.process == process.id
        and request.doubts == reading.keys
        and decided_by_people(run, event, guarded)
    ):
        return
    old = process.program.program.format == 1
    for doubt in reading.doubts:
        run.find(
            "old-format" if old else doubt.code,
            event,
            f"`{call.action}` ran unproven: {doubt.why}",
            process=process,
            predicate=doubt.predicate or None,
            sentence=doubt.sentence,
            severity=Severity.NOTE if old else Severity.ERROR,
            action=call.action,
            values=dict(doubt.values or {}),
        )


def _judge_rereading(
    run: AuditState, event: Event, call: PendingCall, process: ProcessView, reading: CallReading
) -> None:
    """With `recheck` the machine itself has read, just before, all that the call rests on."""
    rules = [
        one
        for one in reading.leaves
        if process.program.functions[one.function].function.kind is Kind.RULE
    ]
    answers = {seq: one.predicate for one in rules for seq in one.evidence}
    for made in run.session_calls:
        predicate = answers.get(made.answered if made.answered is not None else -1)
        facts = run.facts.get(made.action)
        if predicate is None or made.action in BUILT_IN or facts is None or facts.changes != ():
            continue
        if not made.by_machine or made.seq < run.moved:
            run.find(
                "not-read-again",
                event,
                f"`{call.action}` ran on `{made.action}` (#{made.answered}), which was not read "
                "again just before",
                process=process,
                predicate=predicate,
                action=call.action,
            )


def _compare_licence(
    run: AuditState, event: Event, call: PendingCall, process: ProcessView, reading: CallReading
) -> None:
    recorded = event.payload.get("licence")
    if not isinstance(recorded, Mapping):
        return
    grade = recorded.get("grade")
    if grade != reading.grade:
        disagree(run, event, process, f"`{call.action}`", grade, reading.grade)
        return
    if reading.doubts:
        return
    told = recorded.get("leaves")
    named = {
        _spelled(one)
        for one in (told if isinstance(told, list | tuple) else ())
        if isinstance(one, Mapping) and one.get("holds") is not None
    }
    shown = {
        spell([one.predicate, one.holds, str(one.grade), list(one.evidence)])
        for one in reading.leaves
    }
    if named != shown:
        run.find(
            "guard-disagrees",
            event,
            f"the licence of `{call.action}` names other leaves than the trace shows",
            process=process,
            severity=Severity.WARNING,
            recorded=sorted(named - shown),
            shown=sorted(shown - named),
        )


def _spelled(leaf: Mapping[str, JSON]) -> str:
    names = ("predicate", "holds", "grade", "evidence")
    return spell([leaf.get(name) for name in names])


_GRADES: tuple[JSON, ...] = tuple(AuditGrade)


def disagree(
    run: AuditState,
    event: Event,
    process: ProcessView,
    what: str,
    recorded: JSON,
    shown: AuditGrade,
    predicate: str | None = None,
) -> None:
    """An error where the record says more than the trace shows, else a warning."""
    rank = _GRADES.index(recorded) if recorded in _GRADES else len(_GRADES)
    run.find(
        "guard-disagrees",
        event,
        f"{what} is recorded as {recorded}, the trace shows it {shown}",
        process=process,
        predicate=predicate,
        severity=Severity.ERROR if rank > _GRADES.index(shown) else Severity.WARNING,
        recorded=str(recorded),
        shown=str(shown),
    )
