"""A call from its record to its result. A guarded call is made at most once; if it breaks off, a
late answer or a person settles its outcome.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sopilot.handbook.model import BUILT_IN
from sopilot.machine.evidence import may_unprove
from sopilot.machine.machine import Outcome
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import (
    LeaseHeld,
    LeaseLost,
    OutcomeUnrecorded,
    RunEnded,
    SopilotError,
    UserMistake,
    mistake,
)
from sopilot.protocols import ConnectedTools, ToolResult, UpstreamConnection
from sopilot.records.people import Principal
from sopilot.session.questions import RunPaused, ask
from sopilot.trace.events import (
    ANSWERED_LATE,
    CONNECTED,
    OUTCOME_UNKNOWN,
    Actor,
    DomainCall,
    DomainResult,
    Note,
)
from sopilot.values.json import JSON, escape_references, plain, spell
from sopilot.values.text import visible
from sopilot.views.step_answers import NOT_MADE, CallAnswer, CallStatus

if TYPE_CHECKING:
    from sopilot.session.session import Session


_INTERRUPTED = "the run was interrupted"
_REPORTED = "the tool reported an error"
_UNREACHED = "the tool could not be reached"
_CANCELLED = ToolResult(False, {"error": "the call was cancelled"}, unknown=True)


def call_key(session_id: str, call_id: str, action: str, arguments: Mapping[str, JSON]) -> str:
    """The key by which a tool recognises a repetition. It names the very call: a session that
    goes on from an old copy of its store uses the ids of lost calls again, for other calls."""
    spelled = spell([action, dict(arguments)]).encode()
    return f"{session_id}:{call_id}:{hashlib.sha256(spelled).hexdigest()[:16]}"


async def begin(session: Session, call: DomainCall, *, actor: str | None = None) -> None:
    """Inside ``writing``: record a call before its tool runs."""
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
    call: DomainCall,
    connection: str,
    *,
    again: bool = False,
    recalled: ToolResult | None = None,
) -> CallAnswer:
    """Make a call that is on record. ``recalled`` is its result if it was made earlier."""
    try:
        result = recalled
        if result is None:
            result = await invoke_tool(session, call, connection)
        if again and not result.ok:
            # It may have been carried out the first time.
            result = replace(result, unknown=True)
        try:
            async with session.writing():
                seq = await record_result(session, call.call_id, call.action, result)
        except LeaseLost:
            if result.unknown and stays_open(session, call.action):
                raise
            seq = await _record_after_all(session, call, result)
    except LeaseLost:
        raise LeaseLost(session.id, sent=call.action) from None
    except RunPaused:
        raise
    except RunEnded as problem:
        raise OutcomeUnrecorded(call.action, problem) from problem
    except asyncio.CancelledError:
        if not stays_open(session, call.action):
            session.unrecorded.setdefault(call.call_id, _CANCELLED)
        raise
    finally:
        session.in_flight.discard(call.call_id)
    if seq is None:
        why = sentence("broke-off", action=call.action)
        if _broke_off(result.value) is None:
            answer = visible(spell(plain(result.value)))
            why = sentence("reported-error", action=call.action, answer=answer)
        return CallAnswer(call.call_id, CallStatus.UNKNOWN, problem=why)
    return CallAnswer(call.call_id, CallStatus.DONE, result, seq)


async def invoke_tool(session: Session, call: DomainCall, connection: str) -> ToolResult:
    """The tool's answer. A tool is foreign code: if it raises anything, or returns no result,
    it broke off."""
    tools, action, arguments = session.tools, call.action, call.arguments
    assert tools is not None
    try:
        result: Any
        if action in BUILT_IN:
            result = await ask(session, call.call_id, action, arguments)
        else:
            key = call_key(session.id, call.call_id, action, arguments)
            if connection and isinstance(tools, ConnectedTools):
                result = await tools.call_on(connection, action, arguments, key=key)
            else:
                result = await tools.call(action, arguments, key=key)
        if not isinstance(result, ToolResult):
            problem = f"`call` gave no ToolResult for `{action}`: return ToolResult(ok, value)"
            raise RunEnded(problem)
    except RunPaused:
        raise
    except Exception as problem:
        error = f"{_UNREACHED}: {problem}"
        return ToolResult(False, {"error": error}, unknown=True)
    return read_failure(session, action, result)


async def record_result(
    session: Session, call_id: str, action: str, result: ToolResult
) -> int | None:
    """Inside ``writing``: the event of the result; ``None`` for a call that stays open. A result
    that can't be recorded now is kept, and recorded first next time."""
    if result.unknown and stays_open(session, action):
        # A call that was made again may be on record as unknown already.
        if call_id not in session.ledger.unknown:
            why = _broke_off(result.value)
            answer = result.value if why is None else None
            await note_unknown(session, call_id, action, why or _REPORTED, answer)
        return None
    session.unrecorded[call_id] = result
    value = escape_references(plain(result.value))
    await session.step(DomainResult(call_id, result.ok, value, result.unknown))
    del session.unrecorded[call_id]
    return session.ledger.answered[call_id]


def _broke_off(value: JSON) -> str | None:
    """Why there is no answer of the tool; ``None`` if the value is its answer."""
    error = value.get("error") if isinstance(value, Mapping) else None
    return error if isinstance(error, str) and error.startswith(_UNREACHED) else None


async def _record_after_all(session: Session, call: DomainCall, result: ToolResult) -> int | None:
    """Record a result after another process took the session for dead, if the call is still
    open and no process has the session now. If a person resolved the call otherwise, note that."""
    session.unrecorded.pop(call.call_id, None)
    try:
        await session.refresh()
    except LeaseHeld:
        raise LeaseLost(session.id) from None
    async with session.writing():
        if call.call_id in session.configuration.pending:
            return await record_result(session, call.call_id, call.action, result)
        settled = session.ledger.answered.get(call.call_id)
        resolved = session.own_events[settled].payload["ok"] if settled is not None else result.ok
        if resolved != result.ok and not result.unknown:
            details: dict[str, JSON] = {"call_id": call.call_id, "ok": result.ok}
            await session.step(Note(ANSWERED_LATE, details))
        raise LeaseLost(session.id)


async def resolve_outcome(
    session: Session,
    call_id: str,
    *,
    ok: bool,
    value: JSON = None,
    by: str,
    who: Principal | None = None,
) -> Outcome:
    """Record how an irreversible call ended. ``ok=False`` lets it be made again, so the rules for
    people are those of an approval."""
    async with session.writing():
        await note_unknown_outcomes(session)  # a tool that broke off in any way left none
        unknown = session.ledger.unknown
        pending = session.configuration.pending.get(call_id)
        if pending is not None and call_id not in {*unknown, *session.in_flight}:
            await note_unknown(session, call_id, pending.action, _INTERRUPTED)
        if pending is None or call_id not in unknown:
            raise unknown_call(call_id, unknown)
        rules = await session.entitlements()
        by = rules.people.name_of(by, who)
        rules.require_witness(pending, by, who)
        replies = {
            "settled_by": by,
            **({"principal": who.as_json()} if who else {}),
            "value": escape_references(plain(value)),
        }
        return await session.step(DomainResult(call_id, ok, replies), actor=Actor.OPERATOR)


async def note_unknown_outcomes(session: Session) -> None:
    """Inside ``writing``, after an interruption: note irreversible calls without a result."""
    for call_id, pending in session.configuration.pending.items():
        guarded = pending.action in session.programs.guarded
        if guarded and call_id not in session.ledger.unknown and call_id not in session.in_flight:
            await note_unknown(session, call_id, pending.action, _INTERRUPTED)


async def record_late(session: Session) -> None:
    """Inside ``writing``: record results that couldn't be recorded when they came."""
    for call_id, result in tuple(session.unrecorded.items()):
        pending = session.configuration.pending.get(call_id)
        if pending is not None:
            await record_result(session, call_id, pending.action, result)
        else:
            # Either the call never got into the trace, or its result did after all.
            del session.unrecorded[call_id]


async def note_unknown(
    session: Session, call_id: str, action: str, why: str, answer: JSON = None
) -> None:
    details: dict[str, JSON] = {"call_id": call_id, "action": action, "why": why}
    if answer is not None:
        details["value"] = escape_references(plain(answer))
    await session.step(Note(OUTCOME_UNKNOWN, details))


def stays_open(session: Session, action: str) -> bool:
    """P10: whether a call that broke off stays open until it is resolved. It may be carried out at
    any time, and a guarded action may rest on what it changes."""
    guarded = session.programs.guarded
    if not guarded or action in BUILT_IN:
        return False
    return action in guarded or may_unprove(session.machine.programs, action)


def unknown_call(call_id: str, known: Iterable[str]) -> UserMistake:
    return mistake(
        "unknown-call",
        f"there is no such call `{call_id}` here",
        help=did_you_mean(call_id, known),
    )


async def connections(session: Session, name: str) -> Sequence[UpstreamConnection]:
    tools = session.tools
    # Every call comes here, and asking a protocol of plain tools costs more than the lookup.
    if not hasattr(tools, "call_on") or not isinstance(tools, ConnectedTools):
        return ()
    return await tools.connections(name)


async def note_connections(
    session: Session, name: str, present: Sequence[UpstreamConnection]
) -> str:
    """P8, inside ``writing``: record new and lost connections. Return the one for ``name``."""
    for item in present:
        known = session.configuration.connections.get(item.upstream)
        if item.id != (known.id if known is not None else ""):
            details = {"upstream": item.upstream, "connection": item.id, "actions": [*item.actions]}
            await session.step(Note(CONNECTED, details))
    return next((entry.id for entry in present if name in entry.actions), "")


def read_failure(session: Session, name: str, result: ToolResult) -> ToolResult:
    """Read a failure as an answer where the handbook's ``not_found`` says so, and an error of a
    guarded action as a failure where its ``not_done`` does."""
    guard = session.programs.guarded.get(name)
    if result.ok or (result.unknown and guard is None):
        return result
    for program in session.programs.programs.values():
        condition = guard.not_done if guard is not None else program.not_found.get(name)
        if condition is None:
            continue
        try:
            if session.judge(condition, {**program.constants, "result": result.value}):
                return replace(result, ok=guard is None, unknown=False)
        except SopilotError:
            continue
    return result
