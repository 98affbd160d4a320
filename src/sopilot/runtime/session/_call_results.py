"""How calls end: what comes of them goes on record, late or by a person where it must."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import RunEnded, SopilotError, UserMistake, did_you_mean, mistake
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session._entitlement import named, no_witness
from sopilot.runtime.session.identity import load_people
from sopilot.runtime.session.protocols import ToolResult, Tools
from sopilot.runtime.session.releases import authors_of
from sopilot.runtime.trace.runtime_notes import ANSWERED_LATE, OUTCOME_UNKNOWN
from sopilot.runtime.vm import JSON, Actor, DomainResult, Note, Outcome

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


async def settle_outcome(
    session: Session, call_id: str, *, ok: bool, value: JSON, by: str, who: Principal | None = None
) -> Outcome:
    """A person found out how an irreversible call ended. ``ok=False`` lets it be made again: so
    who says it is asked for as if they approved it."""
    people = await load_people(session._store)
    by = named(people, by, who)
    async with session.writing():
        await note_unknown_outcomes(session)  # a tool that broke off in any way left none
        if call_id not in session.ledger.unknown:
            raise unknown_call(call_id, session.ledger.unknown)
        stands = session.configuration
        problem = no_witness(
            people, session.metadata, stands, stands.pending[call_id], by, who,
            await authors_of(session._store, session.metadata),
        )  # fmt: skip
        if problem is not None:
            raise UserMistake([problem])
        said = {"settled_by": by, **({"principal": who.as_json()} if who else {}), "value": value}
        return await session.step(DomainResult(call_id, ok, said), actor=Actor.OPERATOR)


async def note_unknown_outcomes(session: Session) -> None:
    """Inside ``writing``, after an interruption: irreversible calls that have no result."""
    for call_id, pending in session.configuration.pending.items():
        guarded = pending.action in session.programs.guarded
        if guarded and call_id not in session.ledger.unknown and call_id not in session.in_flight:
            await note_unknown(session, call_id, pending.action, "the run was interrupted")


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


async def note_unknown(session: Session, call_id: str, action: str, why: str) -> None:
    await session.step(Note(OUTCOME_UNKNOWN, {"call_id": call_id, "action": action, "why": why}))


async def note_answered_late(session: Session, call_id: str, result: ToolResult) -> None:
    """Inside ``writing``: where the tool contradicts whoever settled the call before it said so."""
    settled = session.ledger.answered.get(call_id)
    said = session.own_events[settled].payload if settled is not None else {"ok": result.ok}
    if said["ok"] != result.ok and not result.unknown:
        details: dict[str, JSON] = {"call_id": call_id, "ok": result.ok}
        await session.step(Note(ANSWERED_LATE, details))


def unknown_call(call_id: str, known: Iterable[str]) -> UserMistake:
    return mistake(
        "unknown-call",
        f"there is no such call `{call_id}` here",
        help=did_you_mean(call_id, known),
    )


async def asked(tools: Tools, name: str, arguments: Mapping[str, JSON], key: str) -> ToolResult:
    """What a tool answers. It is somebody else's: what is no answer is a tool that broke off."""
    given: object = await tools.call(name, arguments, key=key)
    if not isinstance(given, ToolResult):
        raise RunEnded(f"`call` gave no ToolResult for `{name}`: return ToolResult(ok, value)")
    return given


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
