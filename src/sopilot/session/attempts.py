"""Guarded calls of agents that follow no protocol.

The agent calls a guarded action when it likes. The runtime finds the procedure by the action,
starts it at that action with the values of the call, and lets the guard decide. It decides again
under the lock after every call that it makes itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Constant
from sopilot.machine.call_ledger import HeldCall, HeldState
from sopilot.machine.evidence import changes
from sopilot.machine.layout import Position
from sopilot.machine.leaves import prover_at
from sopilot.machine.recipes import WantedCall
from sopilot.machine.terms import plain_arguments
from sopilot.program.model import Act, Guarded, Kind
from sopilot.proof.agenda import Need, Plan, inputs_beside, plan_call
from sopilot.proof.guard import Hold, license_here
from sopilot.session import admission
from sopilot.session.admission import Admitted, Decided, admit, as_received, carry_out, hold_call
from sopilot.session.questions import WAITING, asker_here
from sopilot.trace.events import AWAITS_PROOF, Actor, DomainCall, Fail, JudgeCheck, Start
from sopilot.values.json import JSON, ArgumentsKey, key_of, same, spell
from sopilot.views.guard_answers import guard_text, plan_text, refusals_of
from sopilot.views.step_answers import CallAnswer

if TYPE_CHECKING:
    from sopilot.session.session import Session

MOST_OWN_CALLS = 64
"""Calls that the runtime makes by itself for one guarded call."""

SUPERSEDED = "the agent asked for something else"


class _Candidate(NamedTuple):
    """A procedure that carries the action out, at the step that does."""

    start: Start
    here: Position
    plan: Plan
    proven: bool = False


async def attempt(
    session: Session, guarded: Guarded, wish: DomainCall, *, rehearsed: bool = False
) -> CallAnswer | None:
    """Carry the call out if it is proven; else say what it needs, or why it is refused. A
    ``rehearsed`` one isn't carried out: ``None`` if it would be."""
    action, sent = wish.action, wish.arguments
    async with session.writing():  # which records late results first
        since = session.configuration.next_seq
    made: set[tuple[str, ArgumentsKey]] = set()

    async def decide() -> Decided:
        received = replace(wish, arguments=as_received(session, action, sent))
        decided = await _decide(session, guarded, received, since, made)
        if isinstance(decided, HeldCall):
            received = replace(wish, arguments=as_received(session, action, decided.arguments))
            decided = await _decide(session, guarded, received, since, made, amended=True)
        assert not isinstance(decided, HeldCall)
        if isinstance(decided, Admitted) and session.as_written and not rehearsed:
            admitted = decided.call.arguments
            if not same(dict(admitted), dict(sent)):
                text = guard_text("as_written", session.language, arguments=spell(admitted))
                return await _blocked(session, wish, text)
        return decided

    return await carry_out(session, action, decide, rehearsed=rehearsed, made=made)


async def _decide(
    session: Session,
    guarded: Guarded,
    wish: DomainCall,
    since: int,
    made: set[tuple[str, ArgumentsKey]],
    *,
    amended: bool = False,
) -> Decided | HeldCall:
    """Inside ``writing``: what to do next about the call. A ``HeldCall`` is this call with the
    arguments that people gave it."""
    action, arguments = wish.action, wish.arguments
    await session.look_at_clock()
    repeated = admission.repeated(session, action, arguments)
    if repeated:
        return await _blocked(session, wish, repeated)
    waiting = admission.under_way(session, action)
    if waiting is not None:
        return await hold_call(session, wish, waiting)
    chosen = _choose(session, action, arguments, since)
    limit = session.settings.limits.processes
    if chosen is None and len(session.configuration.processes) >= limit:
        text = guard_text("full", session.language, limit=limit)
        return await _blocked(session, wish, text)
    if chosen is None:
        return await admit(session, guarded, wish, since)  # holds it, and says why
    await _begin(session, chosen.start)
    held = None if amended else admission.amended_since(session, action, arguments)
    if held is not None and held.state is HeldState.APPROVED:
        return held
    plan = chosen.plan
    # Programs may ask for the evidence of every option: what can be read is read before the act.
    own = _own_call(session, chosen, made)
    if own is not None:
        return own
    if chosen.proven or not (plan.needs or plan.unmet or plan.problem):
        return await admit(session, guarded, wish, since)
    if _only_unasked(session, plan):
        waits = await admit(session, guarded, wish, since)  # a person may decide instead
        if isinstance(waits, CallAnswer) and waits.held is None:
            return replace(waits, problem=WAITING.format(session=session.id))
        return waits
    return await _answer(session, chosen, wish)


def _only_unasked(session: Session, plan: Plan) -> bool:
    """Whether nothing is missing but questions that this client can't show the user."""
    unasked = {"error": WAITING.format(session=session.id)}
    for need in plan.needs:
        for call in need.calls:
            newest = session.configuration.answers.get(call.act.action, {})
            answer = newest.get(key_of(call.arguments))
            if call.act.action not in BUILT_IN or answer is None or answer.value != unasked:
                return False
    return bool(plan.needs) and not plan.unmet and all(need.calls for need in plan.needs)


async def _blocked(session: Session, wish: DomainCall, text: str) -> CallAnswer:
    held = await hold_call(session, wish, Hold(AWAITS_PROOF, text))
    return replace(held, plan=Plan(problem=text))


def _choose(
    session: Session, action: str, arguments: Mapping[str, JSON], since: int
) -> _Candidate | None:
    """The procedure that licenses the call; else the one that can still get there with the
    fewest calls; else the first that refuses it."""
    best: _Candidate | None = None
    for start in _starts(session, action, arguments):
        here = _position(session, start)
        if here is None:
            continue
        licence = license_here(here, arguments, session.judge)
        if not licence.missing and session.settings.guard == "ask":
            return _Candidate(start, here, Plan(), proven=True)
        # A read that failed is made once more per attempt.
        failed = since if session.settings.guard == "auto" else here.frame.opened
        plan = plan_call(
            here, arguments, session.judge,
            since=since, failed_since=failed, requested=partial(admission.asked_since, session),
        )  # fmt: skip
        if not licence.missing:
            return _Candidate(start, here, plan, proven=True)
        if best is None or _rank(plan) < _rank(best.plan):
            best = _Candidate(start, here, plan)
    return best


def _rank(plan: Plan) -> tuple[bool, int]:
    return not plan.needs, len(plan.needs)


def _starts(session: Session, action: str, arguments: Mapping[str, JSON]) -> list[Start]:
    starts = []
    running = session.configuration.process
    for goal, layout in session.machine.programs.layouts.items():
        for step in layout.entry.steps.values():
            if not isinstance(step, Act) or not step.goal or step.action != action:
                continue
            passed = {
                term.name: arguments.get(parameter)
                for parameter, term in plain_arguments(step.arguments)
                if not isinstance(term, Constant) and term.name in layout.entry.parameters
            }
            claimed: Mapping[str, JSON] = {}
            if running is not None and running.goal == goal:
                before = running.arguments
                if all(same(before.get(name), value) for name, value in passed.items()):
                    claimed = before  # given for this very call
            values = {
                name: value
                for name, value in {**claimed, **session.supplied}.items()
                if name in layout.entry.parameters and name not in passed
            }
            values |= {name: value for name, value in passed.items() if value is not None}
            starts.append(Start(goal, values, step.label))
    return starts


def _position(session: Session, start: Start) -> Position | None:
    """Where the start leads: the running process if it is the same attempt."""
    if _runs(session, start):
        return session.machine.position(session.configuration)
    # An attempt that runs is given up first, as ``_begin`` does: the start may only add to it.
    idle = session.configuration._replace(active=None, suspended=())
    supposed = session.machine.suppose(idle, start, at=session.clock.now())
    return None if supposed is None else session.machine.position(supposed)


def _runs(session: Session, start: Start) -> bool:
    here = session.machine.position(session.configuration)
    return (
        here is not None
        and here.process.goal == start.goal
        and len(here.process.frames) == 1
        and here.frame.cursor == start.act
        and same(dict(here.process.arguments), dict(start.arguments))
    )


async def _begin(session: Session, start: Start) -> None:
    if _runs(session, start):
        return
    while session.configuration.active is not None:
        await session.step(Fail(SUPERSEDED), actor=Actor.RUNTIME)
    await session.step(start, actor=Actor.RUNTIME)


def _own_call(
    session: Session, chosen: _Candidate, made: set[tuple[str, ArgumentsKey]]
) -> WantedCall | None:
    """The next call if the runtime may make it: a question to the user; with ``auto``, a
    read-only call, or one that opens a gate with values that the application supplied. Calls
    behind an undecided check aren't made, nor calls whose action requires what isn't proven: an
    unidentified customer's details aren't read."""
    if not chosen.plan.needs or len(made) >= MOST_OWN_CALLS or session.tools is None:
        return None
    prover = prover_at(chosen.here, chosen.here.process.known, session.judge)
    for need in chosen.plan.needs if chosen.proven else chosen.plan.needs[:1]:
        for call in need.calls:
            filled = _filled(session, chosen, need, call)
            if filled is None or (call.act.action, key_of(filled.arguments)) in made:
                continue
            if prover.may_precede(filled):
                return filled
    return None


def _filled(
    session: Session, chosen: _Candidate, need: Need, call: WantedCall
) -> WantedCall | None:
    action = call.act.action
    if action in BUILT_IN:
        return call if asker_here(session) is not None else None
    if session.settings.guard != "auto" or action in session.programs.guarded:
        return None
    function = chosen.here.program.functions[need.function].function
    if function.kind is Kind.GATE:
        if function.principal or function.is_fact:
            return None
        own = {
            parameter: session.supplied[term.name]
            for parameter, term in plain_arguments(call.act.arguments)
            if parameter in call.open
            and not isinstance(term, Constant)
            and term.name in session.supplied
        }
        if not own or own.keys() != set(call.open):
            return None  # nobody asked for it
        return call._replace(arguments={**call.arguments, **own}, open=())
    reads = changes(session.machine.programs, action) == ()
    return call if reads and not call.open else None


async def judge_check(session: Session, check: str, holds: bool) -> str:
    """Record a model's judgement on a check that a guarded call waits for."""
    need = session.judgements.get(check)
    if need is None:
        return guard_text("not_judged", session.language, check=check)
    async with session.writing():
        judged = JudgeCheck(need.function, need.values, holds, need.evidence)
        outcome = await session.step(judged)
    key = "judged" if outcome.accepted else "not_judged"
    return guard_text(key, session.language, check=check)


async def give_values(session: Session, values: Mapping[str, JSON]) -> str:
    """Record values for inputs of the attempted procedure that its act has no argument for. Like
    arguments they are the model's claims: they open no gate, and the application's own win."""
    async with session.writing():
        here = session.machine.position(session.configuration)
        if here is None or session.open_guarded or not isinstance(here.step, Act):
            return guard_text("not_wanted", session.language)
        names = {*inputs_beside(here.layout.function, here.step)} - session.supplied.keys()
        for name, value in values.items():
            if name not in names:
                return guard_text("not_wanted", session.language)
            problem = here.program.type_problem(name, value)
            if problem is not None:
                return guard_text("bad_value", session.language, problem=problem)
        claimed = {**here.process.arguments, **values}
        await _begin(session, Start(here.process.goal, claimed, here.frame.cursor))
    return guard_text("judged", session.language)


async def _answer(session: Session, chosen: _Candidate, wish: DomainCall) -> CallAnswer:
    """Record why the call isn't made, and end the process if it is refused."""
    plan, program = chosen.plan, chosen.here.program.program
    masked = session.secrets.masked
    reasons = refusals_of(plan, program, session.configuration, masked, session.language)
    show = session.configuration if session.settings.guard == "auto" else None
    text = masked(
        plan_text(
            plan, program, wish.action, reasons, session.language,
            tools=session.tool_names, show=show,
        )
    )  # fmt: skip
    held = await hold_call(session, wish, Hold(AWAITS_PROOF, text))
    session.judgements = {
        program.functions[need.function].judges: need
        for way in (plan.needs, *plan.instead)
        for need in way
        if need.judgement
    }
    if plan.unmet:
        await session.step(Fail(text), actor=Actor.MACHINE)
    return replace(held, plan=plan, reasons=reasons)
