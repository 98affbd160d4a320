"""Domain calls: guarded, recorded before and after, made at most once where it matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sopilot.language.diagnostics import (
    Diagnostic,
    RunEnded,
    SopilotError,
    UserMistake,
    did_you_mean,
)
from sopilot.language.program import Guarded
from sopilot.runtime.proof import Grade, Licence, license_call
from sopilot.runtime.proof.freshness import changes
from sopilot.runtime.session._approvals import HeldCall, HeldState, same_doubt
from sopilot.runtime.session.call_answer import CallAnswer, CallStatus, waiting_text
from sopilot.runtime.session.errors import LeaseLost
from sopilot.runtime.session.guards import Hold, hold_reason
from sopilot.runtime.session.ledger import (
    AWAITS_APPROVAL,
    AWAITS_DECISION,
    AWAITS_OUTCOME,
    AWAITS_ROOT,
    HELD_CALL,
    OUTCOME_UNKNOWN,
)
from sopilot.runtime.session.protocols import ToolResult
from sopilot.runtime.vm import JSON, Actor, Decision, DomainCall, DomainResult, Note, Outcome
from sopilot.runtime.vm.values import plain_mapping, without_references
from sopilot.runtime.vm.whole_values import whole_values

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


OPERATOR = "operator"
"""The role that decides on an unproven call where the handbook names none."""
NOT_MADE = ToolResult(False, {"error": "the call was not made: the store had failed"})


async def call_tool(
    session: Session, name: str, arguments: Mapping[str, JSON], call_id: str
) -> CallAnswer:
    sent = without_references(plain_mapping(arguments))
    wanted = whole_values(session.configuration, sent)
    guarded = session.programs.guarded.get(name)
    licence: dict[str, JSON] | None = None
    async with session.writing():
        if guarded is None:
            own_id = session.ledger.fresh_id(call_id)
        else:
            admitted = await _admit(session, guarded, wanted, call_id)
            if isinstance(admitted, CallAnswer):
                return admitted
            own_id, wanted, licence, _ = admitted
        await _begin(session, DomainCall(own_id, name, wanted, licence))
    return await _perform(session, own_id, name, wanted)


async def run_held(session: Session, call_id: str) -> CallAnswer:
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        guarded = session.programs.guarded.get(held.action)
        if guarded is None:
            raise UserMistake(f"`{held.action}` is not an action of the present programs")
        admitted = await _admit(
            session, guarded, dict(held.arguments), call_id, amended=held.amended
        )
        if isinstance(admitted, CallAnswer):
            return admitted
        own_id, wanted, licence, amended = admitted
        call = DomainCall(own_id, held.action, wanted, licence, amended)
        await _begin(session, call)
    return await _perform(session, own_id, held.action, wanted)


async def retry(session: Session, call_id: str) -> CallAnswer:
    async with session.writing():
        pending = session.configuration.pending.get(call_id)
        if pending is None or call_id not in session.retryable:
            raise unknown_call(call_id, session.retryable)
        session.in_flight.add(call_id)
    return await _perform(session, call_id, pending.action, pending.arguments)


async def settle_outcome(
    session: Session, call_id: str, *, ok: bool, value: JSON, by: str
) -> Outcome:
    """A person found out how an irreversible call ended. ``ok=False`` lets it be made again."""
    if not by:
        raise UserMistake("say who found out how the call ended")
    async with session.writing():
        await note_unknown_outcomes(session)  # a tool that broke off in any way left none
        if call_id not in session.ledger.unknown:
            raise unknown_call(call_id, session.ledger.unknown)
        return await session.step(
            DomainResult(call_id, ok, {"settled_by": by, "value": value}), actor=Actor.OPERATOR
        )


async def note_unknown_outcomes(session: Session) -> None:
    """Inside ``writing``, after an interruption: irreversible calls that have no result."""
    for call_id, pending in session.configuration.pending.items():
        guarded = pending.action in session.programs.guarded
        if guarded and call_id not in session.ledger.unknown and call_id not in session.in_flight:
            await _note_unknown(session, call_id, pending.action, "the run was interrupted")


async def record_result(session: Session, call_id: str, result: ToolResult) -> int:
    """The result's number. Inside ``writing``. What cannot be recorded now is kept, and
    recorded first next time."""
    session.unrecorded[call_id] = result
    await session.step(DomainResult(call_id, result.ok, result.value, result.unknown))
    del session.unrecorded[call_id]
    return session.ledger.answered[call_id]


async def record_late(session: Session) -> None:
    """Inside ``writing``: results that could not be recorded when they came."""
    for call_id, result in tuple(session.unrecorded.items()):
        if call_id in session.configuration.pending:
            await record_result(session, call_id, result)
        else:
            # Either the call never got into the trace, or its result did after all.
            del session.unrecorded[call_id]


# --- the guard ------------------------------------------------------------------------


class Admitted(NamedTuple):
    """The id and arguments to run with, and what lets the call through."""

    call_id: str
    arguments: dict[str, JSON]
    licence: dict[str, JSON] | None = None
    amended: bool = False


async def _admit(
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
    hold = hold_reason(session.machine, session.configuration, action, arguments, amended=amended)
    if hold is not None:
        return await _hold(session, action, arguments, call_id, hold)
    licence = _license(session, arguments)
    if not licence.missing and guarded.recheck:
        await _recheck(session, licence)
        licence = _license(session, arguments)
    doubt = _doubt(action, licence)
    if not doubt:
        await _drop_doubted(session, action, arguments, but=call_id if amended else "")
        if guarded.needed <= 0 and not amended:
            return Admitted(session.ledger.fresh_id(call_id), arguments, licence.as_json())
    await expire_due(session)
    if amended:
        held = _amended_request(session, call_id, doubt)
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


async def _recheck(session: Session, licence: Licence) -> None:
    """The machine reads again what the licence rests on, just before the call."""
    if session.tools is None:
        return
    for call in licence.calls:
        action, arguments = call.act.action, dict(call.arguments)
        if changes(session.machine.programs, action) != ():
            continue
        own_id = session.ledger.fresh_id("")
        await session.step(DomainCall(own_id, action, arguments), actor=Actor.MACHINE)
        try:
            result = await session.tools.call(action, arguments, key=f"{session.id}:{own_id}")
        except (OSError, SopilotError) as problem:
            result = ToolResult(False, {"error": f"the tool could not be reached: {problem}"})
        await record_result(session, own_id, result)


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


def _amended_request(session: Session, call_id: str, doubt: str) -> HeldCall | None:
    """The request that people amended, unless something is in doubt that they did not know."""
    held = session.ledger.held[call_id]
    knew = not doubt or same_doubt(held.why, doubt)
    return held if knew and held.state not in (HeldState.EXPIRED, HeldState.USED) else None


def _standing(
    session: Session, guarded: Guarded, arguments: Mapping[str, JSON], doubt: str
) -> HeldCall | None:
    """The latest request that this call would repeat. Who approved without knowing what is not
    proven, of another process, or as another handbook asked, did not approve this."""
    active = session.configuration.active
    asked = (guarded.roles or (OPERATOR,), max(guarded.needed, 1), guarded.expires_seconds)
    for held in reversed(session.ledger.held.values()):
        if not same_doubt(held.why, doubt) or not held.serves(guarded.action, arguments):
            continue
        if (held.roles, held.needed, held.lasts) != asked:
            continue
        if doubt and held.process != active:
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


async def _hold(
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


# --- making the call ------------------------------------------------------------------


async def _begin(session: Session, call: DomainCall) -> None:
    if session.tools is None:
        raise RunEnded("this session was opened without tools")
    # If the store fails now, the call may stand in the trace although it was never made.
    session.unrecorded[call.call_id] = NOT_MADE
    outcome = await session.step(call)
    del session.unrecorded[call.call_id]
    if not outcome.accepted:
        raise RunEnded(f"the call `{call.call_id}` could not be recorded, and was not made")
    session.in_flight.add(call.call_id)


async def _perform(
    session: Session, call_id: str, name: str, arguments: Mapping[str, JSON]
) -> CallAnswer:
    assert session.tools is not None
    guarded = name in session.programs.guarded
    try:
        try:
            result = await session.tools.call(name, arguments, key=f"{session.id}:{call_id}")
        except (OSError, SopilotError) as problem:
            if guarded:
                async with session.writing():
                    await _note_unknown(session, call_id, name, f"the tool broke off: {problem}")
                return CallAnswer(
                    call_id,
                    CallStatus.UNKNOWN,
                    problem=f"`{name}` broke off, and may have been carried out",
                )
            told = {"error": f"the tool could not be reached: {problem}"}
            result = ToolResult(False, told, unknown=True)
        try:
            async with session.writing():
                seq = await record_result(session, call_id, result)
        except LeaseLost:
            session.unrecorded.pop(call_id, None)
            raise
    finally:
        session.in_flight.discard(call_id)
    return CallAnswer(call_id, CallStatus.DONE, result, seq)


async def _note_unknown(session: Session, call_id: str, action: str, why: str) -> None:
    await session.step(Note(OUTCOME_UNKNOWN, {"call_id": call_id, "action": action, "why": why}))


def unknown_call(call_id: str, known: Iterable[str]) -> UserMistake:
    return UserMistake(
        [
            Diagnostic(
                "unknown-call",
                f"there is no such call `{call_id}` here",
                help=did_you_mean(call_id, known),
            )
        ]
    )
