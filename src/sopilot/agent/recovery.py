"""Taking up an interrupted run: calls without a result, and users who spoke already."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from sopilot.agent.operators import RecallsOutcomes
from sopilot.session import HeldState, Session
from sopilot.session.protocols import ToolResult

NEVER_MADE = "the call was interrupted before it was made; make it again if it is still right"


@runtime_checkable
class SkipsTurns(Protocol):
    """Users that can be told how many of their answers were given before an interruption."""

    def skip(self, turns: int) -> None: ...


async def recover(session: Session) -> None:
    """Finish what can be finished without doing anything twice.

    A harmless call is made again under its key. An irreversible one is never
    made again by itself: if the tools can recall how it ended, that is written
    down; otherwise it stays unknown.
    """
    tools: object = session.tools
    if isinstance(tools, RecallsOutcomes):
        for call_id in session.unknown_outcomes:
            result = await tools.recall(f"{session.id}:{call_id}")
            if result is None:
                result = ToolResult(False, {"error": NEVER_MADE})
            await session.settle_outcome(
                call_id, ok=result.ok, value=result.value, by="the tools' own record"
            )
    for call_id in session.retryable:
        await session.retry(call_id)
    for held in session.held_calls:
        if held.state is HeldState.APPROVED:
            await session.run_held(held.call_id)
