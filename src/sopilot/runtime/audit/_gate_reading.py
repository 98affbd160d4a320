"""Whether a gate is open, shut, or neither is shown: from the calls that open and close it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sopilot.language.handbook import Path
from sopilot.language.handbook.look_alikes import look_the_same
from sopilot.language.program.model import Act, Literal
from sopilot.runtime.audit._machine_verdict import machine_verdict
from sopilot.runtime.audit._moment import (
    GATE,
    VERDICT,
    AuditGrade,
    Lack,
    LeafReading,
    Moment,
    RecipeAnswers,
)
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._session_calls import SessionCall, newest_answer
from sopilot.runtime.vm.values import JSON, same


def read_gate(moment: Moment, code: ResolvedFunction, blank: LeafReading) -> LeafReading:
    """Shut by one of its calls that is shut, open where all are open and its verdict says so."""
    openings = {act: _opening(moment, code, act, blank) for act in code.recipes[0]}
    readings = [one for one in openings.values() if isinstance(one, LeafReading)]
    for reading in sorted(readings, key=lambda one: one.holds is None):
        return reading
    calls = {act: one for act, one in openings.items() if isinstance(one, SessionCall)}
    return _opened(moment, code, blank, calls)


def _opening(
    moment: Moment, code: ResolvedFunction, act: Act, blank: LeafReading
) -> SessionCall | LeafReading:
    """The success of one call that opens it, until one that closes it; otherwise shut. Neither is
    shown where the two overlap, or where a call may have been about this gate and may not."""
    closing = code.function.closed_by
    opening = _gate_calls(moment, act, blank.values)
    closings = _gate_calls(moment, closing, blank.values) if closing is not None else []
    others: list[SessionCall] = []
    if code.function.principal:
        # Whoever one of them is opened for next shuts it for this one.
        for one_act in (act, *_other_ways(moment, code)):
            elsewhere = _for_others(moment, one_act, blank.values)
            closings = closings + elsewhere
            here = _gate_calls(moment, one_act, blank.values)
            inputs = {name for name, _ in one_act.arguments}
            others += _last_answered(
                one
                for one in elsewhere
                if one.ok and one.arguments.keys() == inputs and one not in here
            )
    # What was done may have had inputs besides; nobody made the call for the check.
    facts = moment.facts.get(act.action) if code.function.is_fact else None
    besides = frozenset(facts.inputs) if facts is not None else frozenset[str]()
    for one in _successes(act, blank.values, opening, besides):
        if all(other.done_by() < one.seq for other in closings):
            return one
    ended = _successes(closing, blank.values, closings) if closing is not None else []
    ended += others
    ended.sort(key=lambda one: -one.seq)
    shut = [one for one in ended if all(other.done_by() < one.seq for other in opening)]
    if not opening or shut:
        evidence = tuple(one.answered for one in shut[:1] if opening and one.answered is not None)
        return replace(blank, holds=False, grade=AuditGrade.PROVEN, evidence=evidence)
    why = f"nobody knows whether `{act.action}` or what ends it came last"
    return replace(blank, lack=Lack(GATE, why))


def _other_ways(moment: Moment, code: ResolvedFunction) -> list[Act]:
    """The calls of the other gates that know one customer at a time, by the same names."""
    return [
        act
        for one in moment.principals
        if set(one.function.parameters) == set(code.function.parameters)
        and one.function.name != code.function.name
        for act in one.recipes[0]
    ]


def _for_others(moment: Moment, act: Act, values: Mapping[str, JSON]) -> list[SessionCall]:
    return [
        one
        for one in moment.calls
        if one.action == act.action and one.may_have_run and not _is_about(act, values, one)
    ]


def _successes(
    act: Act,
    values: Mapping[str, JSON],
    calls: list[SessionCall],
    besides: frozenset[str] = frozenset(),
) -> list[SessionCall]:
    """With exactly the gate's inputs, and any ``besides``, latest first."""
    good = (one for one in calls if one.ok and _is_about(act, values, one, besides))
    return sorted(_last_answered(good), key=lambda one: -one.seq)


def _last_answered(successes: Iterable[SessionCall]) -> list[SessionCall]:
    """Of the successes of one call the one that was answered last counts, from when it was asked
    for."""
    found: list[SessionCall] = []
    for one in sorted(successes, key=SessionCall.done_by, reverse=True):
        if not any(same(dict(one.arguments), dict(other.arguments)) for other in found):
            found.append(one)
    return found


def _opened(
    moment: Moment, code: ResolvedFunction, blank: LeafReading, calls: Mapping[Act, SessionCall]
) -> LeafReading:
    seqs = {one.answered for one in calls.values() if one.answered is not None}
    evidence = tuple(sorted(seqs))
    opened = replace(blank, holds=True, grade=AuditGrade.PROVEN, evidence=evidence)
    if code.function.verdict is None:
        return opened
    named: dict[str, JSON] = {}
    for act, call in calls.items():
        others = [
            one
            for one in _gate_calls(moment, act, blank.values)
            if one.awaited or not same(dict(one.arguments), dict(call.arguments))
        ]
        if any(one.done_by() > call.seq for one in others):
            return replace(blank, lack=Lack(GATE, f"calls of `{call.action}` overlap"))
        newest = newest_answer(moment.calls, call.action, call.arguments)
        if newest is None or not newest.ok:
            failed = f"`{call.action}` failed when it was called last"
            return replace(blank, lack=Lack(GATE, failed))
        named[act.answer] = newest.value
    answers = RecipeAnswers(named, named[code.recipes[0][-1].answer], evidence)
    holds = machine_verdict(moment, code, code.function.verdict, blank.values, answers)
    if holds is None:
        why = "its verdict cannot be told from what was answered"
        return replace(blank, lack=Lack(VERDICT, why))
    return replace(opened, holds=holds)


def _gate_calls(moment: Moment, act: Act, values: Mapping[str, JSON]) -> list[SessionCall]:
    """The calls that may have been carried out and may have been about this gate: all but those
    that name another value of the same type, which does not look the same."""
    fixed = _gate_inputs(act, values)
    return [
        one
        for one in moment.calls
        if one.action == act.action
        and one.may_have_run
        and not any(
            name in one.arguments
            and _kind(one.arguments[name]) is _kind(value)
            and not same(one.arguments[name], value)
            and not look_the_same(one.arguments[name], value)
            for name, value in fixed.items()
        )
    ]


def _is_about(
    act: Act,
    values: Mapping[str, JSON],
    call: SessionCall,
    besides: frozenset[str] = frozenset(),
) -> bool:
    """Names the gate's values, and has no input but those of the gate and any ``besides``."""
    inputs = {name for name, _ in act.arguments}
    return inputs <= call.arguments.keys() <= inputs | besides and all(
        same(value, call.arguments[name]) for name, value in _gate_inputs(act, values).items()
    )


def _gate_inputs(act: Act, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The inputs that the gate is about; the others are the user's to give."""
    return {
        name: term.value if isinstance(term, Literal) else values[term.name]
        for name, term in act.arguments
        if isinstance(term, Literal) or (not isinstance(term, Path) and term.name in values)
    }


def opens_gate(act: Act, values: Mapping[str, JSON], call: SessionCall) -> bool:
    return call.action == act.action and _is_about(act, values, call)


def _kind(value: JSON) -> type:
    """There is one kind of number."""
    return float if type(value) is int else type(value)
