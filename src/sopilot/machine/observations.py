"""Domain calls, their results, turns of the dialog and notes, and how they move the cursor."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Constant
from sopilot.machine.evidence import fits_result, is_done, past_done, renewed, successes
from sopilot.machine.layout import (
    Moved,
    Position,
    ProgramLayout,
    Programs,
    Refused,
    locate,
    locate_process,
    refused,
)
from sopilot.machine.state import (
    NEVER,
    NONE,
    UNRESOLVED,
    Answers,
    CallRecord,
    Configuration,
    Connection,
    Process,
)
from sopilot.machine.terms import Learning, plain_arguments
from sopilot.program.model import Act, Ask, Do, Step
from sopilot.trace.events import (
    CLOCK,
    CONNECTED,
    DECISIONS,
    PROGRAM_CHANGED,
    AssistantSaid,
    BindEvidence,
    Decision,
    DomainCall,
    DomainResult,
    Note,
    UserSaid,
)
from sopilot.values.json import JSON, Fields, key_of, made, shown, spoken_at


def domain_call(
    programs: Programs, configuration: Configuration, operation: DomainCall, fields: Fields
) -> Moved | Refused:
    call_id = fields["call_id"]
    if call_id in configuration.pending:
        return refused("call-pending", call=shown(call_id))
    seq = configuration.next_seq
    process, frame = configuration.process, configuration.frame
    opened = frame.opened if frame is not None else NEVER
    where = (process.id if process is not None else None, opened)
    pending = CallRecord(
        seq, call_id, fields["action"], fields["arguments"], *where, uses=used_answers(fields)
    )
    processes = configuration.processes
    if process is not None and frame is not None:
        known = process.known
        if operation.amended:
            chosen = _amended(programs, configuration, fields)
            known, frame = {**known, **chosen}, frame.knowing({**frame.locals, **chosen})
        frames = (*process.frames[:-1], frame.called(seq))
        processes = {**processes, process.id: process.moved(frames, known=known, steps=0)}
    waiting = {**configuration.pending, call_id: pending}
    parts = (processes, *configuration[1:3], seq + 1, waiting, *configuration[5:])
    after = made(Configuration, parts)
    return Moved(after, {"opened": pending.opened})


def used_answers(fields: Fields) -> tuple[int, ...]:
    """P9: the events of the user's answers that a call uses up, as its licence records them."""
    licence = fields.get("licence")
    uses = licence.get("uses") if isinstance(licence, Mapping) else None
    return tuple(use for use in uses if type(use) is int) if isinstance(uses, list) else ()


def _amended(programs: Programs, configuration: Configuration, fields: Fields) -> dict[str, JSON]:
    """The values that people chose for the act, by name; the whole process has them from now on."""
    here = locate(programs, configuration)
    if here is None or len(here.process.frames) != 1 or not isinstance(here.step, Act):
        return {}
    arguments = fields["arguments"]
    return {
        term.name: arguments[parameter]
        for parameter, term in plain_arguments(here.step.arguments)
        if not isinstance(term, Constant) and parameter in arguments
    }


_NO_HISTORY = (NEVER, NEVER, None, NEVER)


def domain_result(
    programs: Programs, configuration: Configuration, operation: DomainResult, fields: Fields
) -> Moved | Refused:
    call_id = fields["call_id"]
    pending = configuration.pending.get(call_id)
    if pending is None:
        return refused("no-such-call", call=shown(call_id))
    seq = configuration.next_seq
    observed = made(CallRecord, (*pending[:8], seq, operation.ok, fields["value"], *_NO_HISTORY))
    goal_seq = configuration.goal_seq
    if operation.ok and pending.action in programs.goal_actions:
        goal_seq = seq
    processes = configuration.processes
    moved: str | None = None
    learned: dict[str, JSON] = {}
    place = ""
    if pending.process is not None:
        process = processes[pending.process]
        process = process.moved(process.frames, results=(*process.results, observed), steps=0)
        here = locate_process(programs, configuration, process)
        if here is not None:
            place = here.frame.place
            if operation.ok and here.frame.opened == pending.opened:
                passed = _pass(here, observed)
                if passed is not None:
                    process, moved, learned = passed
        processes = {**processes, process.id: process}
    waiting = {**configuration.pending}
    del waiting[call_id]
    answers = _answered(configuration.answers, _as_said(observed), operation.unknown)
    used = configuration.used
    if pending.uses and (operation.ok or operation.unknown):
        used = used.union(pending.uses)
    parts = (processes, *configuration[1:3], seq + 1, waiting, goal_seq, answers)
    after = made(Configuration, (*parts, configuration.clock, used, configuration.connections))
    added = {
        "action": pending.action,
        "call": pending.call_seq,
        "opened": pending.opened,
        "moved": moved,
        "learned": learned,
    }
    return Moved(after, added, pending.process, place)


def _as_said(observed: CallRecord) -> CallRecord:
    """A question is answered by the user's latest message alone."""
    if observed.action not in BUILT_IN or NEVER != spoken_at(observed.value) == observed.heard:
        return observed
    return observed._replace(ok=False)


def _answered(answers: Answers, observed: CallRecord, unknown: bool) -> Answers:
    of_action = answers.get(observed.action, NONE)
    key = key_of(observed.arguments)
    earlier = of_action.get(key)
    # If two questions overlap, the user's later message counts, not the later result.
    if (
        earlier is not None
        and observed.action in BUILT_IN
        and 0 <= spoken_at(observed.value) < spoken_at(earlier.value)
    ):
        return answers
    *success, touched = earlier[-4:] if earlier is not None else _NO_HISTORY
    if observed.ok:
        success = [observed.seq, observed.call_seq, observed.value]
        touched = max(observed.seq, touched)
    elif unknown:
        touched = UNRESOLVED
    newest = made(CallRecord, (*observed[:11], *success, touched))
    return {**answers, observed.action: {**of_action, key: newest}}


def _pass(here: Position, observed: CallRecord) -> tuple[Process, str, dict[str, JSON]] | None:
    """Move the process's cursor behind the step that this success fulfils, if it does."""
    layout = here.layout
    label = layout.past_asking(here.frame.cursor)
    step = layout.steps[label]
    learning = Learning(here.program, here.process)
    if isinstance(step, Do) and observed.action in step.uses:
        target = layout.after[label]
    elif not isinstance(step, Act):
        return None
    elif fits_result(here, step, observed):
        learning.learn_from_call(step, observed.arguments, layout)
        if step.each is not None and not is_done(here, step, successes(here)):
            return None
        target = layout.after[label]
        if layout.soft:
            target = past_done(here, target)
    elif layout.soft:
        passed = _past_fallback(here, label, observed, learning)
        if passed is None:
            return None
        target = passed
    else:
        return None
    frames = (*learning.frames[:-1], learning.frames[-1].at(target))
    done = None if layout.soft else (layout.name, label, key_of(observed.arguments))
    process = here.process.moved(frames, known=learning.known, passed=done)
    return process, target, learning.learned


def _past_fallback(
    here: Position, label: str, observed: CallRecord, learning: Learning
) -> str | None:
    """Behind the recipe in the steps, once this frame has completed an equivalent one."""
    for recipe in here.layout.function.fallbacks:
        requests = [act for act in recipe if fits_result(here, act, observed)]
        if not requests:
            continue
        done = successes(here)
        if all(is_done(here, act, done) for act in recipe):
            for act in requests:
                learning.learn_from_call(act, observed.arguments, here.layout)
            return here.layout.past_asking(label, acting=True)
    return None


def _heard(configuration: Configuration) -> Configuration:
    """Note the latest message as the answer to every open question."""
    waiting = {
        call_id: item._replace(heard=configuration.next_seq)
        for call_id, item in configuration.pending.items()
        if item.action in BUILT_IN
    }
    if not waiting:
        return configuration
    return configuration._replace(pending={**configuration.pending, **waiting})


def user_said(
    programs: Programs, configuration: Configuration, operation: UserSaid, fields: Fields
) -> Moved:
    configuration = _heard(configuration)
    here = locate(programs, configuration)
    if here is None or not isinstance(here.step, Ask):
        return Moved(configuration.numbered(configuration.next_seq + 1), {"moved": None})
    target = here.layout.after[here.step.label]
    return Moved(here.with_frame(here.frame.at(target)), {"moved": target})


def recorded(
    programs: Programs,
    configuration: Configuration,
    operation: AssistantSaid | Note,
    fields: Fields,
) -> Moved:
    after = configuration.numbered(configuration.next_seq + 1)
    if isinstance(operation, Note) and operation.name == CLOCK:
        now = fields["details"].get("now")
        after = after._replace(clock=now if isinstance(now, str) else "")
    elif isinstance(operation, Note) and operation.name == CONNECTED:
        after = _connected(programs, after, fields["details"], configuration.next_seq)
    elif isinstance(operation, Note) and operation.name == PROGRAM_CHANGED:
        # Answers to questions of the earlier programs don't count for the new ones.
        stored = {name: item for name, item in after.answers.items() if name not in BUILT_IN}
        after = after._replace(answers=stored)
    return Moved(after)


def _connected(
    programs: Programs, after: Configuration, details: Fields, seq: int
) -> Configuration:
    """P8: answers, gates and own steps of a process that rest on an earlier connection no longer
    count. The answers stay on record."""
    named = details.get("actions")
    actions = frozenset(map(str, named)) if isinstance(named, list | tuple) else frozenset()
    fresh = Connection(str(details.get("connection")), seq, actions)
    after = after._replace(connections={**after.connections, str(details.get("upstream")): fresh})
    lost = {action for action in actions if renewed(programs, after, action) == seq}
    return after._replace(
        processes={
            name: _without(programs.layouts.get(item.goal), item, lost)
            for name, item in after.processes.items()
        }
    )


def _without(layout: ProgramLayout | None, process: Process, lost: set[str]) -> Process:
    if layout is None or not lost or not (process.gates or process.passed):
        return process
    functions = layout.functions
    gates = {
        key: bound
        for key, bound in process.gates.items()
        if lost.isdisjoint(act.action for act in functions[key[0]].recipe_acts)
    }
    passed = frozenset(
        item
        for item in process.passed
        if lost.isdisjoint(_calls_of(functions[item[0]].steps[item[1]]))
    )
    return process._replace(gates=gates, passed=passed)


def _calls_of(step: Step) -> tuple[str, ...]:
    if isinstance(step, Act):
        return (step.action,)
    return tuple(step.uses) if isinstance(step, Do) else ()


def decision(
    programs: Programs, configuration: Configuration, operation: Decision, fields: Fields
) -> Moved | Refused:
    if operation.decision not in DECISIONS:
        return refused("unknown-decision", names=", ".join(DECISIONS))
    return Moved(configuration.numbered(configuration.next_seq + 1))


def bind_earlier(here: Position, operation: BindEvidence, fields: Fields) -> Moved | Refused:
    """Pass an ``Act`` of a rule on an earlier, still fresh success of the same call."""
    label = here.frame.cursor
    step = here.step
    if not isinstance(step, Act) or not here.layout.soft:
        return here.wrong_step("bind_evidence")
    for result in here.process.results:
        if result.seq == operation.result:
            break
    else:
        return refused("no-such-result", seq=operation.result)
    if not result.ok or result.seq <= here.configuration.goal_seq:
        return refused("stale-result", seq=operation.result)
    if not fits_result(here, step, result):
        return refused("other-call", seq=operation.result)
    target = here.layout.after[label]
    added = {"label": label, "evidence": [result.seq]}
    return Moved(here.with_frame(here.frame.borrowing(result.seq, target)), added)
