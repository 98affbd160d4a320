"""What a client is told of what went wrong: what a model can do about it, and no more."""

from __future__ import annotations

from sopilot.language.diagnostics import RunEnded, SopilotError
from sopilot.runtime.session import LeaseHeld, UnknownSession


def told(problem: SopilotError) -> str:
    """Owners, leases and stores are operators' matters."""
    if isinstance(problem, UnknownSession):
        return "The runtime cannot do this: there is no such session."
    if isinstance(problem, LeaseHeld):
        return "Not done: another call of this session is under way. Try again in a moment."
    if isinstance(problem, RunEnded):
        return "Not done: the runtime cannot do this now. Try again in a moment; operators know."
    return f"The runtime cannot do this: {problem}"
