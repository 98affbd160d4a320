"""The audit of a session as it stands: configured here, and nowhere else."""

from __future__ import annotations

from collections.abc import Collection

from sopilot.language.handbook import Handbook
from sopilot.language.handbook.cel import judge
from sopilot.runtime.agent.arms import Arm
from sopilot.runtime.audit import Report, audit_trace
from sopilot.runtime.audit.without_machine import audit_untracked
from sopilot.runtime.session import Session


async def audit_session(
    session: Session,
    handbook: Handbook,
    arm: Arm,
    *,
    goal: str | None = None,
    ended: bool = True,
    offered: Collection[str] | None = None,
) -> Report:
    """Of what the machine did where there is one, else of the calls alone. ``goal`` is what the
    user came for and ``offered`` are the tools the agent had, where they are known: without a
    machine the trace does not tell."""
    whole = await session.shown_events()
    if arm.machine:
        return audit_trace(
            session.first_programs.programs,
            whole,
            session_id=session.id,
            judge=judge,
            head=session.head,
            # The chain is over the events as they were sealed; these are restored ones.
            chain=session.events,
            changes=session.program_changes,
            ended=ended,
        )
    return audit_untracked(
        handbook,
        whole,
        goal=goal,
        chain=session.events,
        session_id=session.id,
        judge=judge,
        head=session.head,
        offered=offered,
    )
