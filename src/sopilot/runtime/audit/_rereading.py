"""Reading again is no violation: a read-only call that repeats what a check of this process asks
for, or that the machine itself makes just before it lets a call through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.language.program.model import Act, Arguments, Check, Kind
from sopilot.runtime.audit._acceptance import DEEPEST
from sopilot.runtime.audit._audit_state import AuditState
from sopilot.runtime.audit._call_reading import moment_of, passed_along, values_at_the_act
from sopilot.runtime.audit._gate_reading import opens_gate
from sopilot.runtime.audit._moment import Lack, Moment, Unreadable
from sopilot.runtime.audit._recipe_answers import asked_calls
from sopilot.runtime.audit._resolved_function import ProgramCode, ResolvedFunction
from sopilot.runtime.audit._session_calls import SessionCall, calls_of, newest_answer
from sopilot.runtime.audit._state import PendingCall, ProcessView
from sopilot.runtime.vm.events import Actor, Event
from sopilot.runtime.vm.values import JSON, same


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
