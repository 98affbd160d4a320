"""Is a domain call one that the program asks for where it stands?"""

from __future__ import annotations

from sopilot.language.diagnostics import Severity
from sopilot.language.program.model import Act, Ask, Do, Local
from sopilot.runtime.audit._approvals import judge_guard
from sopilot.runtime.audit._audit_state import AuditState
from sopilot.runtime.audit._evidence import disagreement
from sopilot.runtime.audit._guarded_findings import judge_proof
from sopilot.runtime.audit._rereading import is_reread
from sopilot.runtime.audit._standing import can_accept, remaining_checks
from sopilot.runtime.audit._state import FrameView, PendingCall, ProcessView
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import same


def judge_call(run: AuditState, event: Event, call: PendingCall) -> bool:
    """Findings about a domain call, in the frame that was active when it was made; whether the
    program asked for it there."""
    process, frame = run.process, run.top
    run.calls += 1
    if process is not None and process.lost:
        return False
    licensed, why = _licence(process, frame, call)
    if frame is not None and not licensed:
        licensed = _is_amended(run, event, frame, call)
    reread = not licensed and is_reread(run, event, call, process)
    if _after_goal(run, process):
        run.calls_after_goal += 1
        run.find(
            "calls-after-goal",
            event,
            f"`{call.action}` was called although the goal had succeeded already",
            severity=Severity.ERROR if call.action in run.goal_actions else Severity.WARNING,
            action=call.action,
        )
    elif call.action in run.goal_actions and not (
        licensed or (process is not None and why and call.action in _asked_for(frame))
    ):
        _premature(run, event, call, process)
    elif not licensed and not reread:
        run.find(
            "unlicensed-call",
            event,
            f"`{call.action}` {why}",
            predicate=frame.code.function.predicate if frame is not None else None,
            sentence=(
                run.sentence_of(process, frame) if process is not None and frame is not None else ""
            ),
            # Reading one thing more may be what the rule needs, and harms nobody.
            severity=Severity.NOTE if run.only_reads(call.action) else Severity.ERROR,
            action=call.action,
        )
    judge_guard(run, event, call, process, violated=not licensed)
    if process is not None:
        judge_proof(run, event, call, process)
    return licensed or reread


def _is_amended(run: AuditState, event: Event, frame: FrameView, call: PendingCall) -> bool:
    """The goal's call with the arguments that people amended it to: theirs to choose."""
    step = frame.step
    if not isinstance(step, Act) or not step.goal or step.action != call.action:
        return False
    given = [(term, call.arguments.get(parameter)) for parameter, term in step.arguments]
    agreed = all(
        same(value, other)
        for term, value in given
        for another, other in given
        if isinstance(term, Local) and term == another
    )
    if not agreed:
        return False  # two inputs that are to be one
    # A request that follows an amendment has an id of its own.
    return any(
        one.payload.get("decision") == "amend"
        and same(one.payload.get("arguments"), dict(call.arguments))
        for decisions in run.decisions.values()
        for one in decisions
    )


def _asked_for(frame: FrameView | None) -> set[str]:
    return {act.action for act in _acts_here(frame)} if frame is not None else set()


def _acts_here(frame: FrameView) -> tuple[Act, ...]:
    """The calls that the active function asks for: a rule's in any order, else the one at the
    cursor, once what is to be asked has been asked."""
    if frame.code.judges:
        return frame.code.acts
    step = frame.step
    seen = set()
    while isinstance(step, Ask) and step.label not in seen:
        seen.add(step.label)
        step = frame.code.steps[frame.code.following(step)]
    return (step,) if isinstance(step, Act) else ()


def _licence(
    process: ProcessView | None, frame: FrameView | None, call: PendingCall
) -> tuple[bool, str]:
    if process is None or frame is None:
        return False, "was called while no process was running"
    acts = [act for act in _acts_here(frame) if act.action == call.action]
    wrong = [disagreement(process, frame, act, call.arguments) for act in acts]
    if None in wrong:
        return True, ""
    if isinstance(frame.step, Do) and call.action in frame.step.uses:
        return True, ""
    if wrong:
        return False, f"was called with another `{wrong[0]}` than the procedure is about"
    return False, f"is not what `{frame.code.function.name}` asks for at `{frame.cursor}`"


def _after_goal(run: AuditState, process: ProcessView | None) -> bool:
    """After the goal of the process, until another process runs."""
    if process is None:
        process = run.processes.get(run.last_ended or "")
    return process is not None and process.goal_reached is not None


def _premature(
    run: AuditState, event: Event, call: PendingCall, process: ProcessView | None
) -> None:
    code = next(one for one in run.programs.values() if call.action in one.goal_actions)
    sentence = code.entry.function.says
    if process is None or call.action not in process.program.goal_actions:
        run.find(
            "premature-goal",
            event,
            f"`{call.action}` is the goal of `{code.goal}`, which is not running",
            sentence=sentence,
            action=call.action,
        )
        if any(one.goal == code.goal for one in run.processes.values()):
            return  # what that one checked stands in its own findings
        entry, given = code.entry, dict(call.arguments)
        frame = FrameView(entry, entry.first(), given, None, event.seq, entry.function.name)
        _skipped(run, event, call, ProcessView("", code, [frame], given, dict(given)))
        return
    refused = can_accept(process) is False
    run.find(
        "premature-goal",
        event,
        f"`{call.action}` was called although "
        + ("the checks refuse it" if refused else "the program had not accepted yet"),
        process=process,
        sentence=process.program.entry.function.says,
        action=call.action,
        unmet=[one.predicate for one in process.unmet] if refused else [],
    )
    _skipped(run, event, call, process)


def _skipped(run: AuditState, event: Event, call: PendingCall, process: ProcessView) -> None:
    for check in remaining_checks(process):
        if check.key in process.skipped:
            continue
        process.skipped.add(check.key)
        run.find(
            "skipped-check",
            event,
            f"`{check.predicate}` was never checked before `{call.action}`",
            process=process if process.id else None,
            predicate=check.predicate,
            sentence=check.sentence,
            action=call.action,
        )
