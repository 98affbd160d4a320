"""Domain calls, results, turns, decisions and notes, made again from the events.

Is a domain call one that the program asks for where it stands?

Reading again is no violation: a read-only call that repeats what a check of this process asks
for, or that the machine itself makes just before it lets a call through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.audit.acceptance import DEEPEST
from sopilot.audit.call_reading import moment_of, passed_along, values_at_the_act
from sopilot.audit.calls import all_made, answers, disagreement, made_in, may_be_another
from sopilot.audit.endings import can_accept, remaining_checks
from sopilot.audit.guarded_calls import hold, judge_guard, judge_proof
from sopilot.audit.leaf_reading import Lack, Moment, Unreadable, asked_calls, opens_gate, touches
from sopilot.audit.returns import learn_from_call
from sopilot.audit.state import (
    AuditState,
    Contradiction,
    FrameView,
    PendingCall,
    ProcessView,
    ProgramCode,
    ResolvedFunction,
    SeenResult,
    SessionCall,
    boolean,
    calls_of,
    expect,
    has_withheld,
    mapping,
    newest_answer,
    text,
)
from sopilot.handbook.consent import reply_to
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Path
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, Arguments, Ask, Check, Do, Kind, Literal, Local, Step
from sopilot.trace.events import (
    ANSWERED_LATE,
    AWAITS_APPROVAL,
    AWAITS_ROOT,
    CONNECTED,
    HELD_CALL,
    OUTCOME_UNKNOWN,
    Actor,
    Event,
)
from sopilot.values.json import JSON, same


def is_reread(
    run: AuditState, event: Event, call: PendingCall, process: ProcessView | None
) -> bool:
    facts = run.facts.get(call.action)
    if facts is None or facts.changes != () or call.action in run.goal_actions:
        return False
    if event.actor == Actor.MACHINE:
        return True
    if process is None or not _verifies(process.program, call.action):
        return False
    earlier = calls_of(run.session_calls, call.action, call.arguments)
    if any(one.process == process.id and one.asked_for for one in earlier):
        return True
    frame = process.frames[0] if len(process.frames) == 1 else None
    if frame is None or not isinstance(frame.step, Act) or not frame.step.goal:
        return False
    given = [one.arguments for one in run.requests.values() if one.process == process.id]
    for arguments in ({}, *given):
        values = {**process.known, **frame.values}
        values.update(values_at_the_act(process, frame.step, arguments))
        if _is_asked_for(moment_of(run, process, values), call, values):
            return True
    return False


def _verifies(program: ProgramCode, action: str) -> bool:
    return any(
        act.action == action
        for code in program.functions.values()
        if code.judges
        for act in code.acts
    )


def _is_asked_for(moment: Moment, call: PendingCall, values: Mapping[str, JSON]) -> bool:
    """Whether some leaf of the program, under these values, rests on exactly this call."""
    program = moment.process.program
    made = SessionCall(call.seq, call.action, call.arguments)
    for code, chain in leaves_below(program, program.entry, ()):
        passed = passed_along(chain, values)
        if code.function.kind is Kind.GATE:
            if any(opens_gate(act, passed, made) for act in code.recipes[0]):
                return True
        elif any(_rests_on(moment, code, recipe, passed, call) for recipe in code.recipes):
            return True
    return False


def leaves_below(
    program: ProgramCode, code: ResolvedFunction, chain: tuple[Arguments, ...]
) -> Iterator[tuple[ResolvedFunction, tuple[Arguments, ...]]]:
    """Every rule and gate that the function may check, with the calls that lead there."""
    for step in code.function.steps:
        if not isinstance(step, Check):
            continue
        callee, inner = program.functions[step.function], (*chain, step.arguments)
        if callee.judges:
            yield callee, inner
        elif len(inner) < DEEPEST:
            yield from leaves_below(program, callee, inner)


def _rests_on(
    moment: Moment,
    code: ResolvedFunction,
    recipe: tuple[Act, ...],
    values: Mapping[str, JSON],
    call: PendingCall,
) -> bool:
    named: dict[str, JSON] = {}
    for act in recipe:
        try:
            asked = asked_calls(moment, code, act, values, named)
        except Unreadable:
            return False
        if isinstance(asked, Lack):
            continue
        if act.action == call.action and any(same(one, dict(call.arguments)) for one in asked):
            return True
        found = [newest_answer(moment.calls, act.action, one) for one in asked]
        told = [one.value for one in found if one is not None and one.ok]
        if len(told) == len(asked):
            named[act.answer] = told if act.each is not None else told[0]
    return False


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
    looks_up = run.looks_up(call.action)
    harmless = run.only_reads(call.action) or (looks_up and process and _lacks_input(process))
    if _after_goal(run, process):
        if looks_up and process is None:
            # The next goal of the conversation may need it: the end tells.
            run.late_look_ups.append((event, call.action))
        else:
            find_after_goal(run, event, call.action)
    elif looks_up and process is None:
        # Whom a request is about is looked up before it can be started.
        licensed = True
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
            severity=Severity.NOTE if harmless else Severity.ERROR,
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


def find_after_goal(run: AuditState, event: Event, action: str) -> None:
    run.calls_after_goal += 1
    run.find(
        "calls-after-goal",
        event,
        f"`{action}` was called although the goal had succeeded already",
        severity=Severity.ERROR if action in run.goal_actions else Severity.WARNING,
        action=action,
    )


def _lacks_input(process: ProcessView) -> bool:
    """Whether the procedure waits for a value that a look-up may supply."""
    function, have = process.program.entry.function, {**process.known, **process.frames[0].values}
    return any(have.get(name) is None for name in function.parameters)


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
    _beside_open(run, event, call)
    made = SessionCall(call.seq, call.action, call.arguments, call.process, call.opened, asked_for)
    made.by_machine = event.actor == Actor.MACHINE
    made.uses = call.uses
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


def _beside_open(run: AuditState, event: Event, call: PendingCall) -> None:
    """P10: while a guarded call is open, nothing that may change what it rests on is made."""
    guarded = {name for code in run.programs.values() for name in code.guarded}
    for other in run.pending.values():
        if other.action in guarded and other.action != call.action and _may_matter(run, call):
            run.find(
                "unknown-outcome",
                event,
                f"`{call.action}` was called while nobody knew how `{other.action}` "
                f"(#{other.seq}) ended, which may rest on what it changes",
                action=call.action,
            )
            return


def _may_matter(run: AuditState, call: PendingCall) -> bool:
    """Whether it may change what some rule reads, or opens or closes some gate."""
    for program in run.programs.values():
        for code in program.functions.values():
            closing, acts = code.function.closed_by, {one.action for one in code.acts}
            if code.function.kind is Kind.GATE:
                if call.action in acts or (closing is not None and closing.action == call.action):
                    return True
            elif code.function.kind is Kind.RULE and any(
                touches(run.facts, run.goal_actions, call.action, one) for one in acts
            ):
                return True
    return False


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
    if call.action in BUILT_IN and not _was_said(run, call.action, call.seq, event):
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


def _was_said(run: AuditState, action: str, asked: int, event: Event) -> bool:
    """Whether the answer is the user's latest message between question and answer, and means what
    the answer says of it. A message answers one question: of several that were put at once each
    has its own."""
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
        between[-1:] == [number]
        and isinstance(said, str)
        and run.user_messages[between[-1]] in (said, None)
        and value.get("answer") == reply_to(action, said)
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
    if name == CONNECTED and event.actor == Actor.RUNTIME:
        _connected(run, event, details.get("actions"))
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


def _connected(run: AuditState, event: Event, actions: JSON) -> None:
    """P8: what was answered, opened or done on an earlier connection says nothing of this one."""
    named = {str(one) for one in actions} if isinstance(actions, list | tuple) else set[str]()
    run.connected.update(dict.fromkeys(named, event.seq))
    lost = {one for one in named if one not in run.facts or not run.facts[one].shared}
    for process in run.processes.values():
        functions = process.program.functions
        process.gates = {
            key: bound
            for key, bound in process.gates.items()
            if lost.isdisjoint(act.action for act in functions[key[0]].acts)
        }
        process.done = [
            one for one in process.done if not _did(functions[one[0]].steps[one[1]], lost)
        ]


def _did(step: Step, actions: set[str]) -> bool:
    if isinstance(step, Act):
        return step.action in actions
    return isinstance(step, Do) and not actions.isdisjoint(step.uses)


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
