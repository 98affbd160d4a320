"""Judge tool calls, and record results, messages, decisions and notes.

Reading again isn't a violation: a read-only call may repeat what a check of this process asks
for, or what the machine reads just before a guarded call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sopilot.audit.call_reading import values_at_the_act
from sopilot.audit.endings import can_accept, remaining_checks
from sopilot.audit.guarded_calls import hold, judge_guard, judge_proof
from sopilot.audit.leaf_reading import Moment, touches
from sopilot.audit.state import (
    AuditState,
    ProcessView,
    SessionCall,
    calls_of,
    standing_at,
    step_of,
    verifies,
)
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Path
from sopilot.handbook.yes_or_no import reply_to
from sopilot.machine.evidence import fits_result
from sopilot.machine.layout import FunctionLayout, Position, ProgramLayout, locate_process
from sopilot.machine.replay import Step
from sopilot.machine.state import CallRecord
from sopilot.machine.terms import value_of
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, Check, Do, Kind, Local, Unknown
from sopilot.program.walk import DEEPEST_CALL, passed_values
from sopilot.trace.events import (
    ANSWERED_LATE,
    AWAITS_APPROVAL,
    AWAITS_ROOT,
    CLOCK,
    CONNECTED,
    HELD_CALL,
    OUTCOME_UNKNOWN,
    UNLICENSED_CALL,
    Actor,
    Event,
)
from sopilot.trace.redaction import has_withheld
from sopilot.values.json import JSON, MISSING, same


def is_reread(
    run: AuditState, event: Event, call: SessionCall, process: ProcessView | None
) -> bool:
    facts = run.facts.get(call.action)
    if facts is None or facts.changes != () or call.action in run.goal_actions:
        return False
    if event.actor == Actor.MACHINE:
        return True
    if process is None or not verifies(process.program, call.action):
        return False
    earlier = calls_of(run.session_calls, call.action, call.arguments)
    if any(item.process == process.id and item.asked_for for item in earlier):
        return True
    step = step_of(process.program, process.frames[0]) if len(process.frames) == 1 else None
    if not isinstance(step, Act) or not step.goal:
        return False
    held = [item.arguments for item in run.requests.values() if item.process == process.id]
    for arguments in ({}, *held):
        values = {**process.root_values, **values_at_the_act(process, step, arguments)}
        if _is_asked_for(Moment(run, process, values), call, values):
            return True
    return False


def _is_asked_for(moment: Moment, call: SessionCall, values: Mapping[str, JSON]) -> bool:
    """Whether some leaf of the program, under these values, rests on exactly this call."""
    program = moment.process.program
    return any(
        moment.evidence(layout, passed).rests_on(call)
        for layout, passed in _leaves_below(program, program.entry, values, values)
    )


def _leaves_below(
    program: ProgramLayout,
    layout: FunctionLayout,
    values: Mapping[str, JSON],
    known: Mapping[str, JSON],
    depth: int = 0,
) -> Iterator[tuple[FunctionLayout, Mapping[str, JSON]]]:
    """Every rule and gate that the function may check, reached or not, with its values."""
    for step in layout.function.steps:
        if not isinstance(step, Check):
            continue
        callee = program.functions[step.function]
        passed = passed_values(step.arguments, values, known)
        if callee.soft:
            yield callee, passed
        elif depth < DEEPEST_CALL:
            yield from _leaves_below(program, callee, passed, known, depth + 1)


def judge_call(run: AuditState, event: Event, call: SessionCall) -> bool:
    """Findings about a domain call, in the frame that was active when it was made; whether the
    program asked for it there."""
    process, here = run.process, run.here
    run.calls += 1
    if process is not None and process.lost:
        return False
    licensed, why = _licence(here, call)
    unled = process.direct if process is not None else run.unled
    # An agent without a protocol calls its tools as it likes, also after the goal.
    free = unled and call.action not in run.goal_actions
    licensed = licensed or free
    if here is not None and not licensed:
        licensed = _is_amended(run, here, call)
    reread = not licensed and is_reread(run, event, call, process)
    looks_up = run.looks_up(call.action)
    harmless = run.only_reads(call.action) or (looks_up and process and _lacks_input(process))
    guarded = call.action in run.guarded
    if _after_goal(run, process) and (guarded or not free):
        if looks_up and process is None:
            # The next goal of the conversation may need it: the end tells.
            run.late_look_ups.append((event, call.action))
        else:
            find_after_goal(run, event, call.action)
    elif looks_up and process is None:
        # The subject of a request is looked up before the request can start.
        licensed = True
    elif call.action in run.goal_actions and not (
        licensed or (process is not None and why and call.action in _asked_for(here))
    ):
        _premature(run, event, call, process)
    elif not licensed and not reread:
        run.find(
            "unlicensed-call",
            event,
            why,
            predicate=here.layout.function.predicate if here is not None else None,
            sentence=run.sentence_of(here) if here is not None else "",
            # One more look-up may be what the rule needs, and harms nobody.
            severity=Severity.NOTE if harmless else Severity.ERROR,
            action=call.action,
        )
    judge_guard(run, event, call, process, violated=not licensed)
    if process is not None:
        judge_proof(run, event, call, process)
    return licensed or reread


def _is_amended(run: AuditState, here: Position, call: SessionCall) -> bool:
    """The goal's call with the arguments that people amended it to: theirs to choose."""
    step = here.step
    if not isinstance(step, Act) or not step.goal or step.action != call.action:
        return False
    values = [(term, call.arguments.get(parameter)) for parameter, term in step.arguments]
    agreed = all(
        same(value, other)
        for term, value in values
        for another, other in values
        if isinstance(term, Local) and term == another
    )
    if not agreed:
        return False  # two inputs that are to be one
    # A request that follows an amendment has an id of its own.
    return any(
        item.payload.get("decision") == "amend"
        and same(item.payload.get("arguments"), dict(call.arguments))
        for decisions in run.decisions.values()
        for item in decisions
    )


def _asked_for(here: Position | None) -> set[str]:
    return {act.action for act in _acts_here(here)} if here is not None else set()


def _acts_here(here: Position) -> tuple[Act, ...]:
    """The calls that the active function asks for: a rule's in any order, else the one at the
    cursor, once what is to be asked has been asked."""
    if here.layout.soft:
        return here.layout.recipe_acts
    step = here.layout.steps[here.layout.past_asking(here.frame.cursor)]
    return (step,) if isinstance(step, Act) else ()


def _licence(here: Position | None, call: SessionCall) -> tuple[bool, str]:
    if here is None:
        return False, sentence("audit.no-process", action=call.action)
    acts = [act for act in _acts_here(here) if act.action == call.action]
    wrong = [_disagreement(here, act, call.arguments) for act in acts]
    if None in wrong:
        return True, ""
    if isinstance(here.step, Do) and call.action in here.step.uses:
        return True, ""
    if wrong:
        return False, sentence("audit.other-value", action=call.action, name=wrong[0])
    return False, sentence(
        "audit.not-asked-for",
        action=call.action,
        function=here.layout.name,
        step=here.frame.cursor,
    )


def _disagreement(here: Position, act: Act, arguments: Mapping[str, JSON]) -> str | None:
    """The first argument that differs from what the frame knows, or ``None``."""
    for parameter, term in act.arguments:
        if isinstance(term, Unknown | Path):
            continue
        value = value_of(term, here.layout, here.frame, here.process.known)
        if value is MISSING:
            continue
        if parameter not in arguments:
            if value is not None:
                return parameter
        elif not here.program.agree(value, arguments[parameter]):
            return parameter
    return None


def find_after_goal(run: AuditState, event: Event, action: str) -> None:
    run.calls_after_goal += 1
    run.find(
        "calls-after-goal",
        event,
        sentence("audit.after-goal", action=action),
        severity=Severity.ERROR if action in run.goal_actions else Severity.WARNING,
    )


def _lacks_input(process: ProcessView) -> bool:
    """Whether the procedure waits for a value that a look-up may supply."""
    have = process.root_values
    return any(have.get(name) is None for name in process.program.entry.parameters)


def _after_goal(run: AuditState, process: ProcessView | None) -> bool:
    """After the goal of the process, until another process runs."""
    if process is None:
        process = run.processes.get(run.last_ended or "")
    return process is not None and process.goal_reached is not None


def _premature(
    run: AuditState, event: Event, call: SessionCall, process: ProcessView | None
) -> None:
    goal, program = next(
        (goal, item) for goal, item in run.programs.items() if call.action in item.goal_actions
    )
    if process is None or call.action not in process.program.goal_actions:
        run.find(
            "premature-goal",
            event,
            sentence("audit.not-running", action=call.action, goal=goal),
            sentence=program.entry.function.says,
        )
        if any(item.goal == goal for item in run.processes.values()):
            return  # what that one checked stands in its own findings
        begun = standing_at(program, program.entry.first, dict(call.arguments), event.seq)
        _skipped(run, event, call, begun)
        return
    refused = can_accept(process) is False
    run.find(
        "premature-goal",
        event,
        sentence(f"audit.{'checks-refuse' if refused else 'not-accepted-yet'}", action=call.action),
        process=process,
        unmet=[item.predicate for item in process.unmet] if refused else [],
    )
    _skipped(run, event, call, process)


def _skipped(run: AuditState, event: Event, call: SessionCall, process: ProcessView) -> None:
    for check in remaining_checks(process):
        if check.key in process.skipped:
            continue
        process.skipped.add(check.key)
        run.find(
            "skipped-check",
            event,
            sentence("audit.never-checked", predicate=check.predicate, action=call.action),
            process=process if process.id else None,
            predicate=check.predicate,
            sentence=check.sentence,
        )


def judge_domain_call(run: AuditState, step: Step) -> None:
    event, process, here = step.event, run.process, run.here
    call_id = str(event.payload["call_id"])
    pending = step.after.pending[call_id]
    if process is not None:
        process.set_aside = False
    call = SessionCall(
        event.seq,
        pending.action,
        pending.arguments,
        pending.process,
        pending.opened,
        by_machine=event.actor == Actor.MACHINE,
        place=here.frame.place if here is not None else "",
    )
    call.asked_for = judge_call(run, event, call)
    _repeated(run, event, call)
    _beside_open(run, event, call)
    run.session_calls.append(call)
    run.awaiting[call_id] = call
    run.held.pop(call_id, None)


def _repeated(run: AuditState, event: Event, call: SessionCall) -> None:
    """A guarded call whose outcome is unknown must not be made again by itself."""
    for call_id, seq in run.unknown.items():
        earlier = run.awaiting.get(call_id)
        if earlier is not None and earlier.action == call.action and call.action in run.guarded:
            run.find(
                "unknown-outcome",
                event,
                sentence("audit.repeated-unknown", action=call.action, seq=seq),
            )


def _beside_open(run: AuditState, event: Event, call: SessionCall) -> None:
    """P10: while a guarded call is open, nothing that may change what it rests on is made."""
    guarded = run.guarded
    for other in run.awaiting.values():
        if other.action in guarded and other.action != call.action and _may_matter(run, call):
            run.find(
                "unknown-outcome",
                event,
                sentence(
                    "audit.beside-open", action=call.action, other=other.action, seq=other.seq
                ),
            )
            return


def _may_matter(run: AuditState, call: SessionCall) -> bool:
    """Whether it may change what some rule reads, or opens or closes some gate."""
    for program in run.programs.values():
        for layout in program.functions.values():
            closing = layout.function.closed_by
            acts = {recipe_act.action for recipe_act in layout.recipe_acts}
            if layout.function.kind is Kind.GATE:
                if call.action in acts or (closing is not None and closing.action == call.action):
                    return True
            elif layout.function.kind is Kind.RULE and any(
                touches(run.facts, run.goal_actions, call.action, act) for act in acts
            ):
                return True
    return False


def judge_domain_result(run: AuditState, step: Step) -> None:
    event = step.event
    call_id = str(event.payload["call_id"])
    call = run.awaiting.pop(call_id, None)
    if call is None:
        return  # it was made where nothing could be followed
    if run.unknown.pop(call_id, None) is not None:
        run.settled(call_id)
    call.answered, call.ok = event.seq, event.payload["ok"]
    call.unknown = event.payload.get("unknown") is True
    call.value = event.payload.get("value")
    process = run.processes.get(call.process or "")
    if process is not None:
        _judge_goal_call(run, process, call, step.after.processes[process.id].results[-1])
    if call.action in BUILT_IN and not _was_said(run, call.action, call.seq, event):
        # The machine's questions are answered by the user's own message, and this isn't one.
        call.ok = False


def _judge_goal_call(
    run: AuditState, process: ProcessView, call: SessionCall, record: CallRecord
) -> None:
    if call.ok:
        if call.action in process.program.goal_actions and process.goal_reached is None:
            process.goal_reached = call.answered
        return
    here = locate_process(run.replay.machine.programs, run.configuration, process.state)
    if here is None or not isinstance(here.step, Act) or not here.step.goal:
        return
    if call.place == here.frame.place and fits_result(here, here.step, record):
        process.goal_failed = call.answered


def _was_said(run: AuditState, action: str, request: int, event: Event) -> bool:
    """Whether the answer is the user's latest message between question and answer, and means what
    the answer says of it. A message answers one question: of several that were put at once each
    has its own."""
    value = event.payload.get("value")
    if event.payload.get("ok") is not True or not isinstance(value, Mapping):
        return True
    number, reply = value.get("message"), value.get("said")
    free = (user_message for user_message in run.user_messages if user_message not in run.answering)
    between = [item for item in free if request < item < event.seq]
    if isinstance(number, int):
        run.answering.add(number)
    if has_withheld(dict(value)):
        return number in between
    return (
        between[-1:] == [number]
        and isinstance(reply, str)
        and run.user_messages[between[-1]] in (reply, None)
        and value.get("answer") == reply_to(action, reply)
    )


def assistant_said(run: AuditState, event: Event) -> None:
    message = event.payload.get("text")
    run.last_words = message.lower() if isinstance(message, str) else None


def user_said(run: AuditState, event: Event) -> None:
    text = event.payload.get("text")
    run.user_messages[event.seq] = text if isinstance(text, str) else None
    process = run.process
    if process is not None:
        process.unanswered.append((run.last_words, text.lower() if isinstance(text, str) else ""))
        process.spoken_in.update(frame.opened for frame in process.frames)


def decision(run: AuditState, event: Event) -> None:
    run.decisions.setdefault(str(event.payload.get("call_id")), []).append(event)


def note(run: AuditState, event: Event) -> None:
    name, details = event.note, event.details
    if not details:
        return
    call_id = str(details.get("call_id", ""))
    if name == CLOCK and event.actor == Actor.RUNTIME:
        run.clock = str(details.get("now", ""))
    if name == CONNECTED and event.actor == Actor.RUNTIME:
        _connected(run, event, details.get("actions"))
    if name == "not_offered" and event.actor == Actor.RUNTIME:
        named = details.get("actions")
        run.not_offered.update(map(str, named) if isinstance(named, list | tuple) else ())
    if name == HELD_CALL:
        if details.get("awaits") == AWAITS_APPROVAL:
            run.held[call_id] = event.at
        hold(run, event, details)
    if name == HELD_CALL and details.get("awaits") == AWAITS_ROOT:
        _held_back(run, event, str(details.get("action", "")))
    if name == ANSWERED_LATE:
        outcome = sentence(f"audit.{'took-effect' if details.get('ok') is True else 'failed'}")
        message = sentence("audit.answered-late", call=call_id, outcome=outcome)
        run.find("unknown-outcome", event, message, severity=Severity.WARNING, outcome=str(outcome))
    if name == UNLICENSED_CALL:
        tool = str(details.get("tool", ""))
        run.find("unlicensed-call", event, sentence("audit.made-although-denied", action=tool))
    if name != OUTCOME_UNKNOWN:
        return
    call = run.awaiting.get(call_id)
    run.unknown[call_id] = call.seq if call is not None else event.seq
    action = call.action if call is not None else str(details.get("action", ""))
    run.find(
        "unknown-outcome",
        event,
        sentence("audit.effect-unknown", action=action),
        severity=Severity.WARNING,
    )
    run.unsettled[call_id] = len(run.findings) - 1


def _connected(run: AuditState, event: Event, actions: JSON) -> None:
    """P8: answers from an earlier connection say nothing about this one."""
    names = map(str, actions) if isinstance(actions, list | tuple) else ()
    run.connected.update(dict.fromkeys(names, event.seq))


def _held_back(run: AuditState, event: Event, action: str) -> None:
    """Warn about a guarded call that was held back where the program doesn't accept."""
    process = run.process
    if (action, event.process, event.frame) in run.held_back or (process and process.lost):
        return
    run.held_back.add((action, event.process, event.frame))
    run.find(
        "premature-goal",
        event,
        sentence("audit.held-back", action=action),
        process=process,
        severity=Severity.WARNING,
    )


HEARD: Mapping[str, Callable[[AuditState, Event], None]] = {
    "assistant_said": assistant_said,
    "user_said": user_said,
    "decision": decision,
    "note": note,
}
"""Kinds of event that move nothing, and how the audit records each."""
