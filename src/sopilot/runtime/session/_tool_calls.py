"""Domain calls: guarded, recorded before and after, made at most once where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import RunEnded, UserMistake
from sopilot.language.handbook import BUILT_IN
from sopilot.runtime.session._admission import admit, hold_call, under_way
from sopilot.runtime.session._call_results import (
    asked,
    note_answered_late,
    note_unknown,
    read_failure,
    record_result,
    unknown_call,
)
from sopilot.runtime.session.call_answer import NOT_MADE, CallAnswer, CallStatus
from sopilot.runtime.session.errors import LeaseHeld, LeaseLost
from sopilot.runtime.session.protocols import ToolResult
from sopilot.runtime.session.user_questions import ask
from sopilot.runtime.vm import JSON, DomainCall
from sopilot.runtime.vm.values import plain_mapping, without_references
from sopilot.runtime.vm.whole_values import whole_values

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


async def call_tool(
    session: Session, name: str, arguments: Mapping[str, JSON], call_id: str
) -> CallAnswer:
    sent = without_references(plain_mapping(arguments))
    wanted = whole_values(session.configuration, sent)
    guarded = session.programs.guarded.get(name)
    licence: dict[str, JSON] | None = None
    async with session.writing():
        if guarded is None:
            hold = under_way(session, name)
            if hold is not None:
                return await hold_call(session, name, wanted, call_id, hold)
            own_id = session.ledger.fresh_id(call_id)
        else:
            admitted = await admit(session, guarded, wanted, call_id)
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
        admitted = await admit(
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
    return await _perform(session, call_id, pending.action, pending.arguments, again=True)


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
    session: Session,
    call_id: str,
    name: str,
    arguments: Mapping[str, JSON],
    *,
    again: bool = False,
) -> CallAnswer:
    assert session.tools is not None
    guarded = name in session.programs.guarded
    try:
        try:
            if name in BUILT_IN:
                result = await ask(session, call_id, name, arguments)
            else:
                result = await asked(session.tools, name, arguments, f"{session.id}:{call_id}")
        except Exception as problem:  # a tool is somebody else's: whatever it raises, it broke off
            if guarded:
                async with session.writing():
                    await note_unknown(session, call_id, name, f"the tool broke off: {problem}")
                return CallAnswer(
                    call_id,
                    CallStatus.UNKNOWN,
                    problem=f"`{name}` broke off, and may have been carried out",
                )
            told = {"error": f"the tool could not be reached: {problem}"}
            result = ToolResult(False, told, unknown=True)
        result = read_failure(session, name, result)
        if again and not result.ok:
            # That it fails now does not say that it was not carried out the first time.
            result = replace(result, unknown=True)
        try:
            async with session.writing():
                seq = await record_result(session, call_id, result)
        except LeaseLost:
            session.unrecorded.pop(call_id, None)
            seq = await _record_after_all(session, call_id, result)
    finally:
        session.in_flight.discard(call_id)
    return CallAnswer(call_id, CallStatus.DONE, result, seq)


async def _record_after_all(session: Session, call_id: str, result: ToolResult) -> int:
    """Somebody took the session for dead while its tool was at work. Where nobody has it now and
    nobody has settled the call, what the tool said is how it ended; where somebody has settled it
    otherwise, that is on record for whoever looks."""
    try:
        await session.refresh()
    except LeaseHeld:
        raise LeaseLost(session.id) from None
    async with session.writing():
        if call_id not in session.configuration.pending:
            await note_answered_late(session, call_id, result)
            raise LeaseLost(session.id)
        return await record_result(session, call_id, result)
