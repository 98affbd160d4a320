"""What stands around a session: the tools, who is served, who approves, who says what came of it.

A world is fresh for every run. Where it lives in a process, it is rebuilt in another one
from the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sopilot.language.diagnostics import RunEnded
from sopilot.language.handbook import BUILT_IN
from sopilot.runtime.agent import UNLIMITED, Budgets, Operator, SessionResult
from sopilot.runtime.agent.calls import KEPT_BY_TOOLS
from sopilot.runtime.agent.operators import KeepsUnmadeCalls
from sopilot.runtime.session import Session
from sopilot.runtime.session.call_answer import NOT_MADE
from sopilot.runtime.session.protocols import JSON, ToolCall, ToolResult, Tools, ToolSchema, User
from sopilot.runtime.vm import Actor, Event


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What a score may look at, where the run is at hand."""

    result: SessionResult
    session: Session


class Score(Protocol):
    """The oracle's verdict: ``success``, with ``reasons`` where there are any. ``messages`` is
    how many there were. Without a ``run`` what reached the tools has to be enough."""

    def __call__(self, messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]: ...


Close = Callable[[], Awaitable[None]]


async def nothing_to_close() -> None:
    return


@dataclass(frozen=True, slots=True)
class World:
    """``user`` is simulated; without one the served agent has its own. ``simulated`` worlds
    can do no harm, so arms without a machine may act in them. ``score`` judges the ``task``
    with this ``goal``."""

    tools: Tools
    user: User | None = None
    budgets: Budgets = field(default_factory=lambda: UNLIMITED)
    operator: Operator | None = None
    simulated: bool = False
    score: Score | None = None
    task: str = ""
    goal: str = ""
    close: Close = nothing_to_close

    async def catch_up(self, session_id: str, events: Iterable[Event]) -> None:
        if isinstance(self.tools, ReplayedTools):
            await self.tools.catch_up(session_id, events)


class WorldDiverged(RunEnded):
    """A simulated world did not answer as it did when the trace was written."""


class ReplayedTools:
    """Simulated tools that live in a process: in another process they are rebuilt by making
    the recorded calls again. Implements ``Tools``, ``RecallsOutcomes`` and, for
    tools that do, ``KeepsUnmadeCalls``."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._made: dict[str, ToolResult] = {}
        self._unmade = 0

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    def __getattr__(self, name: str) -> Any:
        if name == "time":  # of the world, where it has one
            return getattr(self._tools, name)
        raise AttributeError(name)

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if key not in self._made:
            self._made[key] = await self._tools.call(name, arguments, key=key)
        return self._made[key]

    async def recall(self, key: str) -> ToolResult | None:
        """A call without a result in the trace was lost with the process that made it."""
        return self._made.get(key)

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        tools: object = self._tools
        kept = isinstance(tools, KeepsUnmadeCalls) and await tools.unmade(call, problem)
        self._unmade += kept
        return kept

    async def catch_up(self, session_id: str, events: Iterable[Event]) -> None:
        """Every answered call that this world has not seen, and every malformed one that it
        keeps. ``events`` with their payloads."""
        called: dict[str, tuple[str, Mapping[str, JSON]]] = {}
        unmade = 0
        for event in events:
            payload = event.payload
            if event.kind == "note" and KEPT_BY_TOOLS in payload["details"]:
                unmade += 1
                if unmade > self._unmade:
                    about = payload["details"]
                    call = ToolCall("", about["tool"], about["arguments"])
                    await self.unmade(call, about["problem"])
                continue
            if event.kind == "domain_call":
                called[payload["call_id"]] = payload["action"], payload["arguments"]
            elif event.kind == "domain_result" and event.actor != Actor.OPERATOR:
                key = f"{session_id}:{payload['call_id']}"
                if key in self._made:
                    continue
                name, arguments = called[payload["call_id"]]
                if name in BUILT_IN:
                    continue  # the user's answer is no work of the tools
                if not payload["ok"] and payload["value"] == NOT_MADE.value:
                    continue
                result = await self.call(name, arguments, key=key)
                if result.ok != payload["ok"]:
                    raise WorldDiverged(
                        f"`{name}` (event {event.seq}) came out otherwise when it was replayed"
                    )


class NoTools:
    """Nothing can be called here."""

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return ToolResult(False, {"error": f"there is no tool `{name}` here"})
