"""Taking up an interrupted run: calls without a result, and users who spoke already."""

from __future__ import annotations

import logging
from typing import Protocol, runtime_checkable

from sopilot.agent.dialog import MODEL_REQUEST
from sopilot.agent.result import Progress, Watch, nobody_watches, shown_call
from sopilot.machine.call_ledger import HeldState
from sopilot.proof.guard import hold_reason
from sopilot.protocols import RecallsOutcomes, ToolResult
from sopilot.records.people import THE_MACHINE
from sopilot.session.calls import call_key
from sopilot.session.session import Session
from sopilot.trace.events import PROGRAM_CHANGED, Actor
from sopilot.values.json import holds_stand_in
from sopilot.values.text import place_of

NEVER_MADE = "the call was interrupted before it was made; make it again if it is still right"


@runtime_checkable
class SkipsTurns(Protocol):
    """Simulated users that can skip the answers from before an interruption."""

    def skip(self, turns: int) -> None: ...


def must_start_again(session: Session) -> bool:
    """Whether a change of programs ended the procedures after the last request to the model."""
    went_over = False
    for sealed in reversed(session.events):
        event = sealed.event
        if event.note == MODEL_REQUEST:
            return False
        went_over |= event.note == PROGRAM_CHANGED
        if went_over and event.kind == "fail" and event.actor == Actor.RUNTIME:
            return True
    return False


async def _recalled(tools: RecallsOutcomes, key: str) -> ToolResult | None:
    """``None`` if the tools can't say how the call ended: it stays unknown."""
    call = key.rpartition(":")[0]  # the rest is a digest of the arguments, which may be secret
    try:
        result: object = await tools.recall(key)
    except Exception as problem:  # tools may raise anything
        message = "`recall` failed for the call `%s`: %s (%s)"
        logging.getLogger("sopilot").error(message, call, type(problem).__name__, place_of(problem))
        return None
    if result is None:
        return ToolResult(False, {"error": NEVER_MADE})
    if isinstance(result, ToolResult):
        return result
    message = "`recall` gave neither a ToolResult nor None for the call `%s`"
    logging.getLogger("sopilot").error(message, call)
    return None


async def recover(session: Session, watch: Watch = nobody_watches) -> None:
    """Finish what can be finished without doing anything twice.

    A harmless call is made again under its key. An irreversible one is never
    made again by itself: if the tools can recall how it ended, that is written
    down; otherwise it stays unknown.
    """
    tools: object = session.tools
    if isinstance(tools, RecallsOutcomes):
        for call_id in session.unknown_outcomes:
            pending = session.configuration.pending[call_id]
            if holds_stand_in(dict(pending.arguments)):
                continue  # erased: these arguments are of no call
            key = call_key(session.id, call_id, pending.action, pending.arguments)
            result = await _recalled(tools, key)
            if result is None:
                continue
            await session.resolve_outcome(
                call_id, ok=result.ok, value=result.value, by="the tools' own record",
                who=THE_MACHINE,
            )  # fmt: skip
    for call_id in session.retryable:
        await session.retry(call_id)
    for held in session.held_calls:
        # Of a program that was changed, it waits until the goal is started for it.
        hold = hold_reason(
            session.machine,
            session.configuration,
            held.action,
            held.arguments,
            amended=held.amended,
        )
        if held.state is HeldState.APPROVED and hold is None:
            shown = session.secrets.shown_call(held)
            watch(Progress("call", shown_call(shown.action, shown.arguments)))
            watch(Progress("result", (await session.run_held(held.call_id)).text))
