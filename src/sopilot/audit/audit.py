"""Judge a trace against its programs: make every event again, and name every deviation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sopilot.audit import endings, returns, tool_calls
from sopilot.audit.disclosure import judge_told
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, report_of
from sopilot.audit.state import AuditState, ProcessView
from sopilot.audit.timeline import about_session
from sopilot.handbook.model import BUILT_IN
from sopilot.machine.layout import Position
from sopilot.machine.replay import FOLLOWED, RECORDED, Replay, Step, end_process
from sopilot.machine.state import Status
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Branch, Program
from sopilot.trace.chain import Head, SealedEvent, verify_chain
from sopilot.trace.events import REJECTED, REUSE, Actor, Event, JudgeCheck
from sopilot.trace.redaction import has_withheld
from sopilot.values.json import JSON, Judge


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
    a session that went over to others. With ``ended`` false, nothing that may
    still come is reported as missing.
    """
    entries = list(events)
    broken, unbroken = judge_chain(entries if chain is None else chain, session_id, head)
    plain = [entry.event if isinstance(entry, SealedEvent) else entry for entry in entries]
    run = read_events(programs, plain, judge=judge, changes=changes)
    judge_told(run, plain)
    if ended:
        _judge_end(run, plain)
    if broken is not None:
        run.findings.insert(0, broken)
    findings = tuple(sorted(run.findings, key=lambda finding: finding.seq))
    return report_of(run, findings, unbroken, session_id, ended=ended)


def read_events(
    programs: Mapping[str, Program],
    events: Sequence[Event],
    *,
    judge: Judge | None = None,
    changes: Mapping[int, Mapping[str, Program]] | None = None,
) -> AuditState:
    """Replay the events, and collect the findings about each."""
    run = AuditState(Replay(programs), judge)
    run.unled = about_session(events[:1]).view in ("guard", "guard-auto")
    for index, event in enumerate(events):
        if changes and index in changes:
            run.go_on_with(changes[index])
            # The questions of earlier programs aren't those of these programs.
            run.session_calls = [
                session_call
                for session_call in run.session_calls
                if session_call.action not in BUILT_IN
            ]
        if event.seq != index:
            why = sentence("audit.event-number", index=index, seq=event.seq)
            run.find("inconsistent-trace", event, why)
        _read(run, event)
    return run


def _read(run: AuditState, event: Event) -> None:
    process = _concerned(run, event)
    step = run.replay.step(event, lost=process is not None and process.lost)
    if event.kind == REJECTED:
        _rejected(run, event)
    else:
        fits = step.made is not None and step.made.kind != REJECTED
        if not step.difference or event.kind in RECORDED or (fits and event.kind in FOLLOWED):
            _judge(run, step)
        if step.difference:
            _contradicted(run, step, process)
    run.take(run.replay.configuration)
    if event.actor in (Actor.MODEL, Actor.USER, Actor.OPERATOR):
        run.moved = event.seq


def _concerned(run: AuditState, event: Event) -> ProcessView | None:
    """The process of the event; for a result, the process that made the call."""
    if event.kind != "domain_result":
        return run.process
    call_id = event.payload.get("call_id")
    call = run.awaiting.get(call_id) if isinstance(call_id, str) else None
    return run.processes.get(call.process or "") if call is not None else None


def _judge(run: AuditState, step: Step) -> None:
    """Judge an event that the programs make."""
    event = step.event
    if event.kind == "domain_call":
        tool_calls.judge_domain_call(run, step)
    elif event.kind == "domain_result":
        tool_calls.judge_domain_result(run, step)
    elif event.kind in tool_calls.HEARD:
        tool_calls.HEARD[event.kind](run, event)
    elif event.kind == "start":
        endings.judge_start(run)
    else:
        _judge_move(run, step)


def _judge_move(run: AuditState, step: Step) -> None:
    """Judge an event inside of a process."""
    event, process, here = step.event, run.process, run.here
    if process is None or here is None:
        return
    if process.lost:
        if event.kind in ("complete", "fail"):
            run.last_ended = process.id
    elif event.kind == "amend":
        endings.judge_amend(run, process)
    elif event.kind == "call":
        process.set_aside = False
    elif event.kind == "return":
        returns.judge_return(run, step, process, here)
    elif event.kind == JudgeCheck.kind:
        returns.judge_direct(event, process)
    elif event.kind == REUSE:
        returns.judge_reuse(run, step, process, here)
    elif event.kind == "complete":
        endings.judge_complete(run, event, process, accepting=True)
    elif event.kind == "fail":
        endings.judge_fail(run, event, process, here)


def _contradicted(run: AuditState, step: Step, process: ProcessView | None) -> None:
    """Report an event that can't happen where the program stands."""
    event, active, here = step.event, run.process, run.here
    if run.blind or (process is not None and process.lost):
        return
    if active is not None and active.lost:
        return
    code = step.made.payload.get("code") if step.made is not None else None
    if code == "not-accepting" and active is not None:
        endings.judge_complete(run, event, active, accepting=False)
        run.replay.configuration = end_process(step.before, Status.COMPLETED)
        return
    if here is not None and (
        code in ("branch-contradicts", "verdict-contradicts") or _took_wrong_target(step, here)
    ):
        run.find(
            "wrong-branch",
            event,
            sentence("audit.left-against", place=here.frame.place, why=step.difference),
            process=active,
            sentence=run.sentence_of(here),
        )
    else:
        run.blind = has_withheld(dict(event.payload))
        if run.blind:
            run.leave_unjudged(event, step.difference)
        else:
            run.find("inconsistent-trace", event, step.difference, process=process)
    for item in (process, active):
        if item is not None and event.kind not in RECORDED:
            item.lost = True


def _took_wrong_target(step: Step, here: Position) -> bool:
    return (
        step.event.kind == "select_branch"
        and isinstance(here.step, Branch)
        and step.made is not None
        and step.made.kind != REJECTED
        and step.event.payload.get("target") != step.made.payload.get("target")
    )


def _rejected(run: AuditState, event: Event) -> None:
    run.rejected += 1
    operation: JSON = event.payload.get("operation")
    process = run.process
    if not isinstance(operation, Mapping) or process is None:
        return
    if operation.get("operation") == "complete" and process.claimed is None:
        process.claimed = event.seq
    if event.payload.get("code") in ("branch-contradicts", "verdict-contradicts"):
        run.find(
            "wrong-branch",
            event,
            sentence("audit.branch-rejected"),
            process=process,
            sentence=run.sentence_of(run.here) if run.here is not None else "",
            severity=Severity.WARNING,
        )


def _judge_follow_up(run: AuditState, events: Sequence[Event]) -> None:
    """Note a follow-up goal that wasn't started although the executor went on."""
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
                sentence("audit.follow-up", goal=refusal.goal, next=refusal.starts),
                severity=Severity.NOTE,
            )


def _judge_end(run: AuditState, events: Sequence[Event]) -> None:
    if not events:
        return
    _judge_follow_up(run, events)
    for event, action in run.late_look_ups:
        tool_calls.find_after_goal(run, event, action)
    last = events[-1]
    by_seq = {event.seq: event for event in events}
    for call_id, call in run.awaiting.items():
        # A question of the runtime that is still open changes nothing.
        if call_id not in run.unknown and call.action not in BUILT_IN:
            run.find(
                "unknown-outcome",
                by_seq.get(call.seq, last),
                sentence("audit.no-result", action=call.action),
                frame=call.place,
                severity=Severity.WARNING,
            )
    for process in run.processes.values():
        if process.lost or process.state.status == Status.COMPLETED:
            continue
        if process.claimed is not None:
            run.find(
                "claimed-completion",
                by_seq.get(process.claimed, last),
                sentence("audit.claimed", goal=process.goal),
                process=process,
            )
        if process.goal_reached is not None:
            run.find(
                "goal-without-completion",
                by_seq.get(process.goal_reached, last),
                sentence("audit.never-completed", goal=process.goal),
                process=process,
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
    code = "audit.chain-short" if index >= len(sealed) else "audit.chain-altered"
    return Finding("tampering", seq, sentence(code, index=index)), False
