"""A trace against its programs: every event made again, every deviation named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sopilot.audit import domain_calls as observing
from sopilot.audit import endings as lifecycle
from sopilot.audit import returns as moving
from sopilot.audit.disclosure import judge_told
from sopilot.audit.domain_calls import find_after_goal
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, decided, score
from sopilot.audit.state import (
    AuditState,
    Contradiction,
    PendingCall,
    ProcessView,
    ProgramCode,
    is_withheld,
    read_program,
)
from sopilot.handbook.model import BUILT_IN
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Program
from sopilot.trace.chain import Head, SealedEvent, verify_chain
from sopilot.trace.events import REJECTED, RESUMED, REUSE, Actor, Event
from sopilot.values.json import JSON, Judge

_HANDLERS: Mapping[str, Callable[[AuditState, Event], None]] = {
    "start": lifecycle.start,
    "amend": lifecycle.amend,
    "call": moving.call,
    "return": moving.give_back,
    "select_branch": moving.select_branch,
    "emit_artifact": moving.emit,
    "complete": lifecycle.complete,
    "fail": lifecycle.fail,
    "domain_call": observing.domain_call,
    "domain_result": observing.domain_result,
    "assistant_said": observing.assistant_said,
    "user_said": observing.user_said,
    "decision": observing.decision,
    "note": observing.note,
    REUSE: moving.reuse,
    RESUMED: lifecycle.resumed,
}


_ANYWHERE = frozenset({"start", "domain_call", "domain_result", "decision", "note", RESUMED})
"""Kinds that are followed even in a process whose position was lost."""


_SILENT = frozenset({REJECTED})


def audit_trace(
    programs: Mapping[str, Program],
    events: Iterable[Event | SealedEvent],
    *,
    session_id: str | None = None,
    judge: Judge | None = None,
    head: Head | None = None,
    chain: Sequence[SealedEvent] | None = None,
    changes: Mapping[int, Mapping[str, Program]] | None = None,
    ended: bool = True,
) -> Report:
    """Judge a trace. ``programs`` maps each goal to the program it ran.

    The chain of hashes is checked when the events are sealed, or on ``chain`` where
    the events were restored from it; ``session_id`` and a ``head`` kept elsewhere
    make that check complete. ``judge`` evaluates
    machine verdicts. ``changes`` are the programs that hold from an event on, for
    a session that went over to others. With ``ended`` false, what may still come
    is not missed.
    """
    codes = {goal: read_program(goal, program) for goal, program in programs.items()}
    entries = list(events)
    broken, unbroken = judge_chain(entries if chain is None else chain, session_id, head)
    plain = [entry.event if isinstance(entry, SealedEvent) else entry for entry in entries]
    later = {
        seq: {goal: read_program(goal, program) for goal, program in some.items()}
        for seq, some in (changes or {}).items()
    }
    run = read_events(codes, plain, judge=judge, changes=later)
    judge_told(run, plain)
    if ended:
        _judge_end(run, plain)
    if broken is not None:
        run.findings.insert(0, broken)
    findings = tuple(sorted(run.findings, key=lambda finding: finding.seq))
    card = score(run, findings, unbroken, session_id, ended=ended)
    return Report(
        findings,
        card,
        tuple(run.refusals),
        tuple(run.checks),
        decided(run),
        run.unguarded(),
        tuple(run.not_judged),
        overrides=tuple(run.overrides),
    )


def read_events(
    programs: Mapping[str, ProgramCode],
    events: Sequence[Event],
    *,
    judge: Judge | None = None,
    changes: Mapping[int, Mapping[str, ProgramCode]] | None = None,
) -> AuditState:
    """The run that the events describe, with what was found on the way."""
    run = AuditState(programs, judge)
    for index, event in enumerate(events):
        if changes and index in changes:
            run.go_on_with(changes[index])
            # Nobody has put the questions of these programs yet, whatever others asked.
            run.session_calls = [one for one in run.session_calls if one.action not in BUILT_IN]
        if event.seq != index:
            run.find("inconsistent-trace", event, f"event {index} has the number {event.seq}")
        _read(run, event)
    return run


def _read(run: AuditState, event: Event) -> None:
    process = _concerned(run, event)
    lost = process is not None and process.lost
    if lost and event.kind not in _ANYWHERE:
        _follow_lost(run, event)
        return
    try:
        if event.kind == REJECTED:
            _rejected(run, event)
        if event.kind not in _SILENT:
            handler = _HANDLERS.get(event.kind)
            if handler is None:
                raise Contradiction(f"no event is of the kind `{event.kind}`")
            before = _before(run, event)
            handler(run, event)
            _judge_place(run, event, before)
        else:
            _judge_place(run, event, _before(run, event))
    except Contradiction as problem:
        _contradicted(run, event, process, str(problem))
    if event.actor in (Actor.MODEL, Actor.USER, Actor.OPERATOR):
        run.moved = event.seq


def _concerned(run: AuditState, event: Event) -> ProcessView | None:
    if event.kind == "domain_result":
        call = _call_of(run, event)
        return run.processes.get(call.process or "") if call is not None else None
    return run.process


def _call_of(run: AuditState, event: Event) -> PendingCall | None:
    call_id = event.payload.get("call_id")
    return run.pending.get(call_id) if isinstance(call_id, str) else None


def _before(run: AuditState, event: Event) -> tuple[str | None, str] | None:
    """Process and place that the event must name; ``None`` where the event decides them."""
    if event.kind in ("start", RESUMED):
        return None
    if event.kind == "domain_result":
        call = _call_of(run, event)
        if call is None:
            return None
        process = run.processes.get(call.process or "")
        if process is None:
            return None, ""
        return process.id, process.top.place if process.top is not None else ""
    return run.active, run.place()


def _judge_place(run: AuditState, event: Event, before: tuple[str | None, str] | None) -> None:
    expected = (run.active, run.place()) if before is None else before
    if (event.process, event.frame) != expected:
        raise Contradiction(
            f"it names `{event.process}` at `{event.frame}`, the trace stands at "
            f"`{expected[0]}` at `{expected[1]}`"
        )


def _contradicted(run: AuditState, event: Event, process: ProcessView | None, problem: str) -> None:
    active = run.process
    if run.blind or (process is not None and process.lost):
        return
    if active is not None and active.lost:
        return
    run.blind = any(is_withheld(value) for value in event.payload.values())
    if run.blind:
        run.leave_unjudged(event, problem)
    else:
        run.find("inconsistent-trace", event, problem, process=process)
    for one in {id(p): p for p in (process, active) if p is not None}.values():
        one.lost = True


def _follow_lost(run: AuditState, event: Event) -> None:
    """Only the ends of a process whose position was lost are still followed."""
    process = run.process
    if process is not None and event.kind in ("complete", "fail"):
        process.frames = []
        process.status = "completed" if event.kind == "complete" else "failed"
        run.active, run.last_ended = None, process.id


def _rejected(run: AuditState, event: Event) -> None:
    run.rejected += 1
    operation: JSON = event.payload.get("operation")
    process = run.process
    if not isinstance(operation, Mapping) or process is None:
        return
    if operation.get("operation") == "complete" and process.claimed is None:
        process.claimed = event.seq
    if event.payload.get("code") in ("branch-contradicts", "verdict-contradicts"):
        frame = process.top
        run.find(
            "wrong-branch",
            event,
            "a branch against the bound results was tried and did not fit",
            process=process,
            sentence=run.sentence_of(process, frame) if frame is not None else "",
            severity=Severity.WARNING,
        )


def _judge_follow_up(run: AuditState, events: Sequence[Event]) -> None:
    """A goal that follows a refusal and was not started, although the executor went on."""
    for refusal in run.refusals:
        after = [event for event in events if event.seq > refusal.seq]
        named = [
            event.payload.get("goal" if event.kind == "start" else "action")
            for event in after
            if event.kind in ("start", "domain_call")
        ]
        went_on = any(event.actor == Actor.MODEL for event in after)
        if refusal.starts and went_on and refusal.starts not in named:
            run.find(
                "otherwise-not-started",
                next(event for event in events if event.seq == refusal.seq),
                f"`{refusal.goal}` was refused, and `{refusal.starts}`, which follows, was not "
                "started",
                severity=Severity.NOTE,
            )


def _judge_end(run: AuditState, events: Sequence[Event]) -> None:
    if not events:
        return
    _judge_follow_up(run, events)
    for event, action in run.late_look_ups:
        find_after_goal(run, event, action)
    last = events[-1]
    by_seq = {event.seq: event for event in events}
    for call_id, call in run.pending.items():
        if call_id not in run.unknown:
            run.find(
                "unknown-outcome",
                by_seq.get(call.seq, last),
                f"`{call.action}` was called and no result was recorded",
                frame=call.frame,
                severity=Severity.WARNING,
                action=call.action,
            )
    for process in run.processes.values():
        sentence = process.program.entry.function.says
        if process.lost or process.status == "completed":
            continue
        if process.claimed is not None:
            run.find(
                "claimed-completion",
                by_seq.get(process.claimed, last),
                f"completion of `{process.goal}` was claimed and never accepted",
                process=process,
                sentence=sentence,
            )
        if process.goal_reached is not None:
            run.find(
                "goal-without-completion",
                by_seq.get(process.goal_reached, last),
                f"the goal action of `{process.goal}` succeeded, the process never completed",
                process=process,
                sentence=sentence,
                severity=Severity.WARNING,
            )


def judge_chain(
    entries: Sequence[Event | SealedEvent], session_id: str | None, head: Head | None
) -> tuple[Finding | None, bool | None]:
    """The finding for a broken chain, and whether the chain is whole (``None``: not sealed)."""
    sealed = [entry for entry in entries if isinstance(entry, SealedEvent)]
    if not sealed or len(sealed) != len(entries):
        return None, None
    index = verify_chain(sealed, session_id, head)
    if index is None:
        return None, True
    seq = sealed[index].event.seq if index < len(sealed) else len(sealed)
    what = (
        "events behind the last one are missing"
        if index >= len(sealed)
        else f"event {index} is not what was sealed"
    )
    return Finding("tampering", seq, f"the chain breaks at index {index}: {what}"), False
