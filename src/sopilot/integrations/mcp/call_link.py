"""What a domain call carries besides its arguments, from the server's end to the tool's.

A session knows names, arguments and results. Progress, cancellation and content
that no trace should hold go past it, through the context of the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sopilot.integrations.mcp.checked_upstream import CheckedUpstream
    from sopilot.integrations.mcp.relay import Relay


class ProgressReport(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Ask(Protocol):
    async def __call__(self, question: str, closed: bool) -> str | None: ...


class Cancelled(asyncio.Event):
    """Set when the client has given up; ``then`` is done at once."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], object]] = []

    def set(self) -> None:
        super().set()
        for one in tuple(self.then):
            one()


class Look(NamedTuple):
    upstream: CheckedUpstream
    task: asyncio.Task[None]


@dataclass(slots=True)
class CallLink:
    """``given`` is the tool's own result, as its library spells it."""

    progress: ProgressReport | None = None
    cancelled: Cancelled = field(default_factory=Cancelled)
    irreversible: bool = False
    """Then it goes on to its end, whoever has left: of a call that is broken off nobody knows how
    it ended."""
    given: object = None
    look: Look | None = None
    """The tool is compared with the approved one for this call, and for no other one that is made
    on the way to it."""
    held: object = None
    """Why the call was not made, where that comparison says so."""
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    """What is done when the client has its answer."""
    unknown: bool = False
    """It was sent, and nobody knows how it ended."""
    ask: Ask | None = None
    """How the client asks its user, where it can."""
    relay: Relay | None = None
    """The client itself, for what the upstream asks of it."""


COMING: ContextVar[tuple[object, Look | None]] = ContextVar("sopilot_coming", default=(None, None))
"""The look that began when the call arrived, before anything of it was read; of whose tools."""


CURRENT_LINK: ContextVar[CallLink | None] = ContextVar("sopilot_call_link", default=None)
