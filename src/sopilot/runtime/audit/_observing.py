"""Domain calls, results, turns, decisions and notes, made again from the events."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import Severity
from sopilot.language.handbook import BUILT_IN, Path
from sopilot.language.handbook.assent import assent
from sopilot.language.program.model import Act, Ask, Do, Literal
from sopilot.runtime.audit._asked_for import judge_call
from sopilot.runtime.audit._audit_state import (
    AuditState,
    Contradiction,
    boolean,
    expect,
    mapping,
    text,
)
from sopilot.runtime.audit._evidence import all_made, answers, made_in, may_be_another
from sopilot.runtime.audit._guarded_findings import hold
from sopilot.runtime.audit._learning import learn_from_call
from sopilot.runtime.audit._session_calls import SessionCall
from sopilot.runtime.audit._state import (
    FrameView,
    PendingCall,
    ProcessView,
    SeenResult,
    has_withheld,
)
from sopilot.runtime.trace.runtime_notes import (
    ANSWERED_LATE,
    AWAITS_APPROVAL,
    AWAITS_ROOT,
    HELD_CALL,
    OUTCOME_UNKNOWN,
)
from sopilot.runtime.vm.events import Actor, Event
from sopilot.runtime.vm.values import JSON


def domain_call(run: AuditState, event: Event) -> None:
    call_id = text(event.payload, "call_id")
    if call_id in run.pending:
        raise Contradiction(f"call `{call_id}` has no result yet")
    process, frame = run.process, run.top
    if process is not None:
        process.set_aside = False
    call = PendingCall(
        event.seq,
        text(event.payload, "action"),
        mapping(event.payload, "arguments"),
        process.id if process is not None else None,
        frame.opened if frame is not None else -1,
        event.frame,
    )
    asked_for = judge_call(run, event, call)
    if event.payload.get("amended") is True and process is not None and not process.lost:
        _take_amended(process, call)
    _repeated(run, event, call)
    made = SessionCall(call.seq, call.action, call.arguments, call.process, call.opened, asked_for)
    made.by_machine = event.actor == Actor.MACHINE
    run.session_calls.append(made)
    run.awaiting[call_id] = made
    run.held.pop(call_id, None)
    run.pending[call_id] = call
    expect(event.payload, "opened", call.opened)


def _take_amended(process: ProcessView, call: PendingCall) -> None:
    """What people chose for the act is what the process is about from then on."""
    step = process.frames[0].step if len(process.frames) == 1 else None
    if not isinstance(step, Act):
        return
    for name, term in step.arguments:
        if not isinstance(term, Literal | Path) and name in call.arguments:
            process.known[term.name] = call.arguments[name]
            process.frames[0].values[term.name] = call.arguments[name]


def _repeated(run: AuditState, event: Event, call: PendingCall) -> None:
    """A guarded call whose outcome is unknown must not be made again by itself."""
    for call_id, seq in run.unknown.items():
        earlier = run.pending.get(call_id)
        if (
            earlier is not None
            and earlier.action == call.action
            and any(call.action in code.guarded for code in run.programs.values())
        ):
            run.find(
                "unknown-outcome",
                event,
                f"`{call.action}` was repeated although the outcome of #{seq} is unknown",
                action=call.action,
            )


def domain_result(run: AuditState, event: Event) -> None:
    call_id = text(event.payload, "call_id")
    call = run.pending.pop(call_id, None)
    if call is None:
        raise Contradiction(f"no call `{call_id}` waits for a result")
    if run.unknown.pop(call_id, None) is not None:
        run.settled(call_id)
    ok = boolean(event.payload, "ok")
    made = run.awaiting.pop(call_id)
    made.answered, made.ok = event.seq, ok
    made.unknown = event.payload.get("unknown") is True
    made.value = event.payload.get("value")
    if call.action in BUILT_IN and not _was_said(run, call.seq, event):
        # Nobody said it: the machine's questions are answered by the user's own message.
        made.ok = False
    result = SeenResult(
        event.seq,
        call.seq,
        call_id,
        call.action,
        call.arguments,
        ok,
        event.payload.get("value"),
        call.process,
        call.opened,
    )
    run.results[event.seq] = result
    if ok and call.action in run.goal_actions:
        run.goal_seq = event.seq
    moved: str | None = None
    learned: dict[str, JSON] = {}
    process = run.processes.get(call.process or "")
    if process is not None:
        process.results.append(result)
        if ok and call.action in process.program.goal_actions and process.goal_reached is None:
            process.goal_reached = event.seq
        frame = process.top
        if not ok and frame is not None and _is_goal_due(process, frame, call, result):
            process.goal_failed = event.seq
        if ok and frame is not None and frame.opened == call.opened and not process.lost:
            stayed = event.payload.get("moved") is None
            acts = frame.code.acts if stayed else ()
            if not any(may_be_another(process, frame, act, result) for act in acts):
                moved = _pass(process, frame, result, learned)
    expect(event.payload, "action", call.action)
    expect(event.payload, "call", call.seq)
    expect(event.payload, "opened", call.opened)
    if process is None or not process.lost:
        expect(event.payload, "moved", moved)
        expect(event.payload, "learned", learned)


def _was_said(run: AuditState, asked: int, event: Event) -> bool:
    """Whether the answer is the message of the user that came between question and answer, and
    means what the answer says of it. A message answers one question: of several that were put
    at once each has its own."""
    value = event.payload.get("value")
    if event.payload.get("ok") is not True or not isinstance(value, Mapping):
        return True
    number, said = value.get("message"), value.get("said")
    free = (one for one in run.user_messages if one not in run.answering)
    between = [one for one in free if asked < one < event.seq]
    if isinstance(number, int):
        run.answering.add(number)
    if has_withheld(dict(value)):
        return number in between
    return (
        between[:1] == [number]
        and isinstance(said, str)
        and run.user_messages[between[0]] in (said, None)
        and value.get("answer") == assent(said, str(value.get("asked", "")))
    )


def _is_goal_due(
    process: ProcessView, frame: FrameView, call: PendingCall, result: SeenResult
) -> bool:
    step = frame.step
    return (
        isinstance(step, Act)
        and step.goal
        and call.frame == frame.place
        and answers(process, frame, step, result)
    )


def _pass(
    process: ProcessView, frame: FrameView, result: SeenResult, learned: dict[str, JSON]
) -> str | None:
    """Moves the cursor behind what this success fulfils."""
    code = frame.code
    label = _past(frame, frame.cursor, Ask)
    step = code.steps[label]
    target: str | None = None
    if isinstance(step, Do):
        if result.action in step.uses:
            target = code.following(step)
    elif isinstance(step, Act) and answers(process, frame, step, result):
        # What is done already is looked up under the values from before this call.
        done = [one for one in made_in(process, frame) if one.ok]
        if step.each is None or all_made(process, frame, step, done):
            target = code.following(step)
            if code.judges:
                target = _past_done(process, frame, target)
            learn_from_call(process, frame, step, result.arguments, learned)
    elif isinstance(step, Act) and code.judges:
        target = _past_fallback(process, frame, label, result, learned)
    if target is not None:
        if not code.judges:
            process.done.append(
                (code.function.name, label, result.arguments if isinstance(step, Act) else {})
            )
        frame.cursor = target
    return target


def _past(frame: FrameView, label: str, *kinds: type) -> str:
    seen = set()
    while label not in seen:
        step = frame.code.steps[label]
        if not isinstance(step, kinds) or not isinstance(step, Act | Ask):
            break
        seen.add(label)
        label = frame.code.following(step)
    return label


def _past_done(process: ProcessView, frame: FrameView, label: str) -> str:
    done = [result for result in made_in(process, frame) if result.ok]
    seen = set()
    while label not in seen:
        seen.add(label)
        step = frame.code.steps[label]
        if not isinstance(step, Act) or not all_made(process, frame, step, done):
            break
        label = frame.code.following(step)
    return label


def _past_fallback(
    process: ProcessView,
    frame: FrameView,
    label: str,
    result: SeenResult,
    learned: dict[str, JSON],
) -> str | None:
    done = [one for one in made_in(process, frame) if one.ok]
    for recipe in frame.code.function.fallbacks:
        mine = [act for act in recipe if answers(process, frame, act, result)]
        if mine and all(all_made(process, frame, act, done) for act in recipe):
            for act in mine:
                learn_from_call(process, frame, act, result.arguments, learned)
            return _past(frame, label, Act, Ask)
    return None


def assistant_said(run: AuditState, event: Event) -> None:
    told = event.payload.get("text")
    run.said = told.lower() if isinstance(told, str) else None


def user_said(run: AuditState, event: Event) -> None:
    frame = run.top
    said = event.payload.get("text")
    run.user_messages[event.seq] = said if isinstance(said, str) else None
    moved: str | None = None
    if frame is not None:
        process = run.here()[0]
        heard = event.payload.get("text")
        process.unanswered.append((run.said, heard.lower() if isinstance(heard, str) else ""))
        for open_frame in process.frames:
            open_frame.user_spoke = True
        if isinstance(frame.step, Ask):
            moved = frame.code.following(frame.step)
            frame.cursor = moved
    expect(event.payload, "moved", moved)


def decision(run: AuditState, event: Event) -> None:
    run.decisions.setdefault(str(event.payload.get("call_id")), []).append(event)


def note(run: AuditState, event: Event) -> None:
    name, details = event.payload.get("name"), event.payload.get("details")
    if not isinstance(details, Mapping):
        return
    call_id = str(details.get("call_id", ""))
    if name == "clock" and event.actor == Actor.RUNTIME:
        run.clock = str(details.get("now", ""))
    if name == "not_offered" and event.actor == Actor.RUNTIME:
        named = details.get("actions")
        run.not_offered.update(map(str, named) if isinstance(named, list | tuple) else ())
    if name == HELD_CALL and details.get("awaits") == AWAITS_APPROVAL:
        run.held[call_id] = event.at
        hold(run, event, details)
    if name == HELD_CALL and details.get("awaits") == AWAITS_ROOT:
        _held_back(run, event, str(details.get("action", "")))
    if name == ANSWERED_LATE:
        said = "took effect" if details.get("ok") is True else "failed"
        message = f"`{call_id}` was settled, and its tool then said that it {said}"
        run.find("unknown-outcome", event, message, severity=Severity.WARNING)
    if name != OUTCOME_UNKNOWN:
        return
    call = run.pending.get(call_id)
    run.unknown[call_id] = call.seq if call is not None else event.seq
    action = call.action if call is not None else str(details.get("action", ""))
    run.find(
        "unknown-outcome",
        event,
        f"nobody knows whether `{action}` took effect",
        severity=Severity.WARNING,
        action=action,
    )
    run.unsettled[call_id] = len(run.findings) - 1


def _held_back(run: AuditState, event: Event, action: str) -> None:
    """A guarded call where the program does not accept: it did not run, and it was tried."""
    process = run.process
    if (action, event.process, event.frame) in run.held_back or (process and process.lost):
        return
    run.held_back.add((action, event.process, event.frame))
    run.find(
        "premature-goal",
        event,
        f"`{action}` was tried before the program accepts it, and held back",
        process=process,
        sentence=process.program.entry.function.says if process is not None else "",
        severity=Severity.WARNING,
        action=action,
    )
