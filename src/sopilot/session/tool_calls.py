"""Domain calls: guarded, recorded before and after, made at most once where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sopilot.handbook.model import BUILT_IN
from sopilot.machine.proof.guard import Hold
from sopilot.machine.terms import whole_values
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import LeaseHeld, LeaseLost, OutcomeUnrecorded, RunEnded, UserMistake
from sopilot.protocols import ToolResult
from sopilot.session.admission import admit, hold_call, under_way
from sopilot.session.outcomes import (
    broken_off,
    call_key,
    connections,
    invoke_tool,
    note_answered_late,
    note_broken_off,
    note_connections,
    read_failure,
    record_result,
    stays_open,
    unknown_call,
)
from sopilot.session.questions import UserAbsent, ask
from sopilot.trace.events import DomainCall
from sopilot.values.json import JSON, plain_mapping, same, without_references
from sopilot.values.schema import filled_in
from sopilot.views.answers import NOT_MADE, CallAnswer, CallStatus

if TYPE_CHECKING:
    from sopilot.session.session import Session


async def call_tool(
    session: Session, name: str, arguments: Mapping[str, JSON], call_id: str
) -> CallAnswer:
    sent = without_references(plain_mapping(arguments))
    wanted = whole_values(session.configuration, sent)
    guarded = session.programs.guarded.get(name)
    licence: dict[str, JSON] | None = None
    recalled: ToolResult | None = None
    present = await connections(session, name)
    async with session.writing():
        connection = await note_connections(session, name, present)
        if guarded is None:
            hold = under_way(session, name)
            if hold is not None:
                return await hold_call(session, name, wanted, call_id, hold)
            own_id = session.ledger.fresh_id(call_id)
        else:
            wanted = as_received(session, name, wanted)
            admitted = await admit(session, guarded, wanted, call_id)
            if isinstance(admitted, CallAnswer):
                return admitted
            own_id, wanted, licence, _, recalled = admitted
        await begin(session, DomainCall(own_id, name, wanted, licence))
    return await perform(session, own_id, name, wanted, connection, recalled=recalled)


async def run_held(session: Session, call_id: str) -> CallAnswer:
    held = session.ledger.held.get(call_id)
    present = await connections(session, held.action) if held is not None else ()
    async with session.writing():
        held = session.ledger.held.get(call_id)
        if held is None:
            raise unknown_call(call_id, session.ledger.held)
        connection = await note_connections(session, held.action, present)
        guarded = session.programs.guarded.get(held.action)
        if guarded is None:
            raise UserMistake(f"`{held.action}` is not an action of the present programs")
        if not same(as_received(session, held.action, held.arguments), dict(held.arguments)):
            why = f"`{held.action}` would fill in arguments by itself: amend it with values for all"
            hold = Hold("root", why)
            return await hold_call(session, held.action, dict(held.arguments), call_id, hold)
        admitted = await admit(
            session, guarded, dict(held.arguments), call_id, amended=held.amended
        )
        if isinstance(admitted, CallAnswer):
            return admitted
        own_id, wanted, licence, amended, recalled = admitted
        call = DomainCall(own_id, held.action, wanted, licence, amended)
        await begin(session, call)
    return await perform(session, own_id, held.action, wanted, connection, recalled=recalled)


def as_received(session: Session, name: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """P12: with what the tool itself would fill in for the handbook's inputs, so that the guard
    knows it. Other inputs are the tool's own business."""
    schemas = session.tools.schemas() if session.tools is not None else ()
    facts = session.machine.programs.actions.get(name)
    declared = facts.inputs.keys() if facts is not None else ()
    for schema in schemas:
        if schema.name == name:
            filled = filled_in(dict(arguments), schema.parameters)
            assert isinstance(filled, Mapping)
            return {key: filled[key] for key in filled if key in arguments or key in declared}
    return dict(arguments)


async def retry(session: Session, call_id: str) -> CallAnswer:
    pending = session.configuration.pending.get(call_id)
    present = await connections(session, pending.action) if pending is not None else ()
    async with session.writing():
        pending = session.configuration.pending.get(call_id)
        if pending is None or call_id not in session.retryable:
            raise unknown_call(call_id, session.retryable)
        action, arguments = pending.action, pending.arguments
        connection = await note_connections(session, action, present)
        session.in_flight.add(call_id)
    return await perform(session, call_id, action, arguments, connection, again=True)


async def begin(session: Session, call: DomainCall, *, actor: str | None = None) -> None:
    if session.tools is None:
        raise RunEnded("this session was opened without tools")
    # If the store fails now, the call may stand in the trace although it was never made.
    session.unrecorded[call.call_id] = NOT_MADE
    outcome = await session.step(call, actor=actor)
    del session.unrecorded[call.call_id]
    if not outcome.accepted:
        raise RunEnded(f"the call `{call.call_id}` could not be recorded, and was not made")
    session.in_flight.add(call.call_id)


async def perform(
    session: Session,
    call_id: str,
    name: str,
    arguments: Mapping[str, JSON],
    connection: str,
    *,
    again: bool = False,
    recalled: ToolResult | None = None,
) -> CallAnswer:
    assert session.tools is not None
    try:
        try:
            if recalled is not None:
                result = recalled
            elif name in BUILT_IN:
                result = await ask(session, call_id, name, arguments)
            else:
                key = call_key(session.id, call_id, name, arguments)
                result = await invoke_tool(session.tools, name, arguments, key, connection)
        except UserAbsent:
            raise
        except Exception as problem:  # a tool is somebody else's: whatever it raises, it broke off
            result = broken_off(problem)
        result = read_failure(session, name, result)
        if again and not result.ok:
            # That it fails now does not say that it was not carried out the first time.
            result = replace(result, unknown=True)
        return await _record(session, call_id, name, result)
    except LeaseLost:
        raise LeaseLost(session.id, sent=name) from None
    except UserAbsent:
        raise
    except RunEnded as problem:
        raise OutcomeUnrecorded(name, problem) from problem
    finally:
        session.in_flight.discard(call_id)


async def _record(session: Session, call_id: str, name: str, result: ToolResult) -> CallAnswer:
    if result.unknown and stays_open(session, name):
        async with session.writing():
            await note_broken_off(session, call_id, name, result)
        why = sentence("broke-off", action=name)
        return CallAnswer(call_id, CallStatus.UNKNOWN, problem=why)
    try:
        async with session.writing():
            seq = await record_result(session, call_id, result)
    except LeaseLost:
        session.unrecorded.pop(call_id, None)
        seq = await _record_after_all(session, call_id, result)
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
