"""How calls end: what comes of them goes on record, late or by a person where it must."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sopilot.handbook.model import BUILT_IN
from sopilot.machine.evidence import may_unprove
from sopilot.machine.machine import Outcome
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import RunEnded, SopilotError, UserMistake, mistake
from sopilot.protocols import ConnectedTools, ToolResult, Tools, UpstreamConnection
from sopilot.records.entitlements import load_entitlements
from sopilot.records.people import Principal
from sopilot.trace.events import (
    ANSWERED_LATE,
    CONNECTED,
    OUTCOME_UNKNOWN,
    Actor,
    DomainResult,
    Note,
)
from sopilot.values.json import JSON, escape_references, plain, spell

if TYPE_CHECKING:
    from sopilot.session.session import Session


_INTERRUPTED = "the run was interrupted"


def call_key(session_id: str, call_id: str, action: str, arguments: Mapping[str, JSON]) -> str:
    """The key by which a tool recognises a repetition. It names the very call: a session that
    goes on from an old copy of its store uses the ids of lost calls again, for other calls."""
    spelled = spell([action, dict(arguments)]).encode()
    return f"{session_id}:{call_id}:{hashlib.sha256(spelled).hexdigest()[:16]}"


async def resolve_outcome(
    session: Session,
    call_id: str,
    *,
    ok: bool,
    value: JSON = None,
    by: str,
    who: Principal | None = None,
) -> Outcome:
    """Record how an irreversible call ended. ``ok=False`` lets it be made again, so this takes
    the same people as an approval."""
    async with session.writing():
        await note_unknown_outcomes(session)  # a tool that broke off in any way left none
        stands = session.configuration
        noted = {*session.ledger.unknown, *session.in_flight}
        if call_id in stands.pending and call_id not in noted:
            await note_unknown(session, call_id, stands.pending[call_id].action, _INTERRUPTED)
        if call_id not in session.ledger.unknown:
            raise unknown_call(call_id, session.ledger.unknown)
        stands = session.configuration
        rules = await load_entitlements(
            session._store, session.metadata, stands, session.ledger, session.programs
        )
        by = rules.people.name_of(by, who)
        rules.require_witness(stands.pending[call_id], by, who)
        replies = {
            "settled_by": by,
            **({"principal": who.as_json()} if who else {}),
            "value": escape_references(plain(value)),
        }
        return await session.step(DomainResult(call_id, ok, replies), actor=Actor.OPERATOR)


async def note_unknown_outcomes(session: Session) -> None:
    """Inside ``writing``, after an interruption: irreversible calls that have no result."""
    for call_id, pending in session.configuration.pending.items():
        guarded = pending.action in session.programs.guarded
        if guarded and call_id not in session.ledger.unknown and call_id not in session.in_flight:
            await note_unknown(session, call_id, pending.action, _INTERRUPTED)


async def record_result(session: Session, call_id: str, result: ToolResult) -> int:
    """The result's number. Inside ``writing``. What cannot be recorded now is kept, and
    recorded first next time."""
    session.unrecorded[call_id] = result
    value = escape_references(plain(result.value))
    await session.step(DomainResult(call_id, result.ok, value, result.unknown))
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


async def note_unknown(session: Session, call_id: str, action: str, why: str) -> None:
    await session.step(Note(OUTCOME_UNKNOWN, {"call_id": call_id, "action": action, "why": why}))


def broken_off(problem: Exception) -> ToolResult:
    messages = {"error": f"the tool could not be reached: {problem}"}
    return ToolResult(False, messages, unknown=True)


def stays_open(session: Session, action: str) -> bool:
    """P10: whether a call that broke off stays without a result until somebody says how it
    ended. It may be carried out at any time, and a guarded action may rest on what it changes."""
    guarded = session.programs.guarded
    if action in guarded:
        return True
    return (
        bool(guarded) and action not in BUILT_IN and may_unprove(session.machine.programs, action)
    )


async def note_broken_off(session: Session, call_id: str, action: str, result: ToolResult) -> None:
    """Inside ``writing``. A call that was made again may be on record as unknown already."""
    if call_id not in session.ledger.unknown:
        value = result.value
        why = value.get("error") if isinstance(value, Mapping) else None
        await note_unknown(session, call_id, action, str(why or value))


async def note_answered_late(session: Session, call_id: str, result: ToolResult) -> None:
    """Inside ``writing``: where the tool contradicts whoever settled the call before it said so."""
    settled = session.ledger.answered.get(call_id)
    reply = session.own_events[settled].payload if settled is not None else {"ok": result.ok}
    if reply["ok"] != result.ok and not result.unknown:
        details: dict[str, JSON] = {"call_id": call_id, "ok": result.ok}
        await session.step(Note(ANSWERED_LATE, details))


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
    """P8, inside ``writing``: put on record which connections are new. The one for ``name``."""
    for item in present:
        known = session.configuration.connections.get(item.upstream)
        if known is None or known.id != item.id:
            details = {"upstream": item.upstream, "connection": item.id, "actions": [*item.actions]}
            await session.step(Note(CONNECTED, details))
    return next((entry.id for entry in present if name in entry.actions), "")


async def invoke_tool(
    tools: Tools, name: str, arguments: Mapping[str, JSON], key: str, connection: str = ""
) -> ToolResult:
    """What a tool answers. It is somebody else's: what is no answer is a tool that broke off."""
    value: object
    if connection and isinstance(tools, ConnectedTools):
        value = await tools.call_on(connection, name, arguments, key=key)
    else:
        value = await tools.call(name, arguments, key=key)
    if not isinstance(value, ToolResult):
        raise RunEnded(f"`call` gave no ToolResult for `{name}`: return ToolResult(ok, value)")
    return value


def read_failure(session: Session, name: str, result: ToolResult) -> ToolResult:
    """A tool that says that there is no such thing has answered, where the handbook says so."""
    if result.ok or result.unknown:
        return result
    for program in session.programs.programs.values():
        condition = program.not_found.get(name)
        if condition is None:
            continue
        try:
            if session.judge(condition, {**program.constants, "result": result.value}):
                return replace(result, ok=True)
        except SopilotError:
            continue
    return result
