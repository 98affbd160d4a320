"""The guard: what an action that cannot be undone needs before it is called, and who is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import BUILT_IN
from sopilot.language.program import Guarded, Kind
from sopilot.runtime.proof import Grade, Licence, license_call
from sopilot.runtime.session._approvals import HeldCall, HeldState, same_doubt
from sopilot.runtime.session._call_results import asked, read_failure, record_result
from sopilot.runtime.session.call_answer import CallAnswer, CallStatus, waiting_text
from sopilot.runtime.session.guards import Hold, hold_reason
from sopilot.runtime.session.protocols import ToolResult
from sopilot.runtime.trace.runtime_notes import (
    AWAITS_APPROVAL,
    AWAITS_DECISION,
    AWAITS_OUTCOME,
    AWAITS_ROOT,
    HELD_CALL,
)
from sopilot.runtime.vm import JSON, Actor, Decision, DomainCall, Note
from sopilot.runtime.vm.freshness import changes, may_disturb
from sopilot.runtime.vm.position import Programs
from sopilot.runtime.vm.recipe_calls import WantedCall
from sopilot.runtime.vm.values import ArgumentsKey, key_of, same

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session

OPERATOR = "operator"
"""The role that decides on an unproven call where the handbook names none."""


class Admitted(NamedTuple):
    """The id and arguments to run with, and what lets the call through."""

    call_id: str
    arguments: dict[str, JSON]
    licence: dict[str, JSON] | None = None
    amended: bool = False


async def admit(
    session: Session,
    guarded: Guarded,
    arguments: dict[str, JSON],
    call_id: str,
    *,
    amended: bool = False,
) -> CallAnswer | Admitted:
    """What to run, or why not now. Inside ``writing``. Amended arguments are people's: they
    need not be the ones that were checked, but what they are is proven, or decided, anew."""
    action = guarded.action
    await session.look_at_clock()
    guarded = _asked_of_people(session, guarded, arguments)
    hold = hold_reason(session.machine, session.configuration, action, arguments, amended=amended)
    hold = hold or under_way(session, action)
    if hold is not None:
        return await hold_call(session, action, arguments, call_id, hold)
    licence = _license(session, arguments)
    if not licence.missing and guarded.recheck:
        licence = await _recheck(session, licence, arguments)
    doubt = _doubt(action, licence)
    if not doubt:
        await _drop_doubted(session, action, arguments, but=call_id if amended else "")
        if guarded.needed <= 0 and not amended:
            return Admitted(session.ledger.fresh_id(call_id), arguments, licence.as_json())
    await expire_due(session)
    if amended:
        held = _amended_request(session, guarded, call_id, doubt)
    else:
        held = _standing(session, guarded, arguments, doubt)
    if held is None:
        held = await _request(session, guarded, arguments, call_id, doubt, amended=amended)
    elif held.state is HeldState.APPROVED:
        record = _on_record(licence, doubt)
        return Admitted(held.call_id, dict(held.arguments), record, amended)
    else:
        own_id = session.ledger.fresh_id(call_id)
        details = {"call_id": own_id, "action": action, "awaits": AWAITS_DECISION}
        await session.step(Note(HELD_CALL, {**details, "held": held.call_id}))
    if doubt and held.state is HeldState.WAITING:
        # Not handed on as waiting: the model can still prove it, and need not wait for people.
        return CallAnswer(held.call_id, CallStatus.HELD, problem=doubt)
    return CallAnswer(held.call_id, CallStatus.HELD, problem=waiting_text(held), held=held)


def _asked_of_people(session: Session, guarded: Guarded, arguments: Mapping[str, JSON]) -> Guarded:
    """Without its approvals where the handbook asks for none with these arguments. What cannot
    be told is asked for."""
    if guarded.when is None:
        return guarded
    clock, process = session.configuration.clock, session.configuration.process
    constants = session.programs.programs[process.goal].constants if process is not None else {}
    variables = {**({"now": clock} if clock else {}), **constants, **arguments}
    try:
        asked = session.judge(guarded.when, variables)
    except SopilotError:
        asked = None
    return replace(guarded, needed=0) if asked is False else guarded


def _license(session: Session, arguments: Mapping[str, JSON]) -> Licence:
    """What cannot be judged is not proven."""
    here = session.machine.position(session.configuration)
    assert here is not None  # the root has accepted
    try:
        return license_call(session.machine.programs, here, arguments, session.judge)
    except (SopilotError, LookupError, TypeError, ValueError, AttributeError) as problem:
        return Licence(f"its proof could not be evaluated ({type(problem).__name__})")


def _doubt(action: str, licence: Licence) -> str:
    """What is not proven, and what to do; empty when all is."""
    if not licence.missing:
        return ""
    return (
        f"`{action}` is held, because {licence.missing}. Verify that and call it again, refuse "
        "with `fail` if it does not hold, or let an operator decide with `sopilot approve`"
    )


def _on_record(licence: Licence, doubt: str) -> dict[str, JSON]:
    """What people let through without the proof is a claim, however many approved it."""
    if not doubt:
        return licence.as_json()
    return {"grade": str(Grade.CLAIMED), "missing": licence.missing}


async def _recheck(session: Session, licence: Licence, arguments: Mapping[str, JSON]) -> Licence:
    """The machine reads again what the licence rests on, just before the call. What it reads may
    lead elsewhere, to another option or another customer's case: then that is read again, too.
    It ends, because no call is made twice and each leads to calls of the recipes alone."""
    reread: set[tuple[str, ArgumentsKey]] = set()
    while True:
        due = [one for one in licence.calls if _key(one) not in reread and _reads(session, one)]
        if licence.missing or not due:
            return licence
        for call in due:
            await _read_again(session, call)
            reread.add(_key(call))
        licence = _license(session, arguments)


def _key(call: WantedCall) -> tuple[str, ArgumentsKey]:
    return call.act.action, key_of(call.arguments)


def _reads(session: Session, call: WantedCall) -> bool:
    action = call.act.action
    return action not in BUILT_IN and changes(session.machine.programs, action) == ()


async def _read_again(session: Session, call: WantedCall) -> None:
    if session.tools is None:
        return
    action, arguments = call.act.action, dict(call.arguments)
    own_id = session.ledger.fresh_id("")
    await session.step(DomainCall(own_id, action, arguments), actor=Actor.MACHINE)
    try:
        result = await asked(session.tools, action, arguments, f"{session.id}:{own_id}")
    except Exception as problem:  # as for every tool: it broke off
        told = {"error": f"the tool could not be reached: {problem}"}
        result = ToolResult(False, told, unknown=True)
    await record_result(session, own_id, read_failure(session, action, result))


async def _drop_doubted(
    session: Session, action: str, arguments: Mapping[str, JSON], *, but: str
) -> None:
    """What was asked while this call was not proven needs no answer any more, but for the
    request that is being carried out."""
    for held in tuple(session.ledger.held.values()):
        open_still = held.state in (HeldState.WAITING, HeldState.APPROVED)
        doubted = held.why and open_still and held.call_id != but
        if doubted and held.serves(action, arguments):
            await session.step(
                Decision("expire", held.call_id, reason="its checks are proven now"),
                actor=Actor.RUNTIME,
            )


def _amended_request(
    session: Session, guarded: Guarded, call_id: str, doubt: str
) -> HeldCall | None:
    """The request that people amended, unless something is in doubt that they did not know, or
    what they made of it needs more of them."""
    held = session.ledger.held[call_id]
    knew = not doubt or (same_doubt(held.why, doubt) and _same_values(session, held))
    enough = (held.roles, held.needed) == (guarded.roles or (OPERATOR,), max(guarded.needed, 1))
    if not knew or (guarded.needed > 0 and not enough):
        return None
    return held if held.state not in (HeldState.EXPIRED, HeldState.USED) else None


def _same_values(session: Session, held: HeldCall) -> bool:
    """Whether the process still has the values that people saw."""
    for sealed in reversed(session.events):
        if sealed.event.seq <= held.seq:
            break
        if sealed.event.kind == "amend" and sealed.event.process == held.process:
            return False
    return True


def _same_errand(session: Session, held: HeldCall) -> bool:
    """Whether the running process is about what people saw: the same procedure with the same
    values, those among them that the tool never gets."""
    process, asked = session.configuration.process, held.process or ""
    before = session.configuration.processes.get(asked)
    if process is None or before is None or not _same_values(session, held):
        return False
    names = session.machine.programs.layouts[process.goal].entry.parameters
    return process.goal == before.goal and all(
        same(process.known.get(name), before.known.get(name)) for name in names
    )


def _standing(
    session: Session, guarded: Guarded, arguments: Mapping[str, JSON], doubt: str
) -> HeldCall | None:
    """The latest request that this call would repeat. Who approved without knowing what is not
    proven, of another errand, or as another handbook asked, did not approve this."""
    active = session.configuration.active
    asked = (guarded.roles or (OPERATOR,), max(guarded.needed, 1), guarded.expires_seconds)
    for held in reversed(session.ledger.held.values()):
        if not same_doubt(held.why, doubt) or not held.serves(guarded.action, arguments):
            continue
        if (held.roles, held.needed, held.lasts) != asked:
            continue
        if (doubt and held.process != active) or not _same_errand(session, held):
            continue
        if held.state in (HeldState.WAITING, HeldState.APPROVED):
            return held
        if held.state is HeldState.REJECTED and held.process == active:
            return held
    return None


async def _request(
    session: Session,
    guarded: Guarded,
    arguments: dict[str, JSON],
    call_id: str,
    doubt: str,
    *,
    amended: bool,
) -> HeldCall:
    own_id = session.ledger.fresh_id(call_id)
    expires = None
    if guarded.expires_seconds is not None:
        expires = session.clock.now() + guarded.expires_seconds
    await session.step(
        Note(
            HELD_CALL,
            {
                "call_id": own_id,
                "action": guarded.action,
                "arguments": arguments,
                "awaits": AWAITS_APPROVAL,
                "roles": list(guarded.roles or (OPERATOR,)),
                "needed": max(guarded.needed, 1),
                "expires_at": expires,
                **({"why": doubt} if doubt else {}),
                **({"amended": True} if amended else {}),
            },
        )
    )
    return session.ledger.held[own_id]


def under_way(session: Session, action: str) -> Hold | None:
    """Why a call waits: what may unprove something waits until a guarded call that is being
    carried out, on what was proven for it, is answered."""
    programs = session.machine.programs
    busy = [
        session.configuration.pending[call_id].action
        for call_id in session.in_flight
        if call_id in session.configuration.pending
    ]
    guarded = next((one for one in busy if one in session.programs.guarded), None)
    if guarded is None:
        return None
    if not _may_unprove(programs, action):
        return None
    why = f"`{guarded}` is being carried out; call `{action}` again when it is answered"
    return Hold(AWAITS_OUTCOME, why)


def _may_unprove(programs: Programs, action: str) -> bool:
    """Whether it may change what a rule reads, opens or shuts a gate, or is what was done."""
    for layout in programs.layouts.values():
        for one in layout.functions.values():
            acts = [act.action for act in one.recipe_acts]
            if one.function.kind is Kind.RULE:
                if any(may_disturb(programs, action, verifier) for verifier in acts):
                    return True
            elif one.function.kind is Kind.GATE:
                closing = one.function.closed_by
                if action in acts or (closing is not None and closing.action == action):
                    return True
    return False


async def hold_call(
    session: Session, action: str, arguments: dict[str, JSON], call_id: str, hold: Hold
) -> CallAnswer:
    own_id = session.ledger.fresh_id(call_id)
    awaits = AWAITS_OUTCOME if hold.awaits == AWAITS_OUTCOME else AWAITS_ROOT
    await session.step(
        Note(
            HELD_CALL,
            {
                "call_id": own_id,
                "action": action,
                "arguments": arguments,
                "awaits": awaits,
                "why": hold.why,
            },
        )
    )
    return CallAnswer(own_id, CallStatus.HELD, problem=hold.why)


async def expire_due(session: Session) -> None:
    """Inside ``writing``: put on record which requests have run out."""
    now = session.clock.now()
    for held in tuple(session.ledger.held.values()):
        waiting = held.state in (HeldState.WAITING, HeldState.APPROVED)
        if waiting and held.has_expired(now):
            await session.step(
                Decision("expire", held.call_id, reason="the time for it ran out"),
                actor=Actor.RUNTIME,
            )
