"""Model, tools and oracle with a stopwatch, so that the harness's own share can be told."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from sopilot.adapters.model_by_name import close_model
from sopilot.desks.tasks.world import FinishedRun, Score
from sopilot.runtime.agent.operators import KeepsUnmadeCalls
from sopilot.runtime.session.protocols import (
    JSON,
    Model,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    Tools,
    ToolSchema,
)


class TimedModel:
    """``system_by_call`` is the system text of every request, in characters: first message and
    slot; ``system_characters`` the largest of them."""

    def __init__(self, model: Model, answered: Callable[[], None] = lambda: None) -> None:
        self._model = model
        self._answered = answered
        self.seconds = 0.0
        self.system_by_call: list[int] = []

    @property
    def system_characters(self) -> int:
        return max(self.system_by_call, default=0)

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        begun = time.perf_counter()
        try:
            reply = await self._model.complete(request)
            self._answered()
            return reply
        finally:
            self.seconds += time.perf_counter() - begun
            shown = sum(len(m.content) for m in request.messages if m.role == "system")
            self.system_by_call.append(shown)

    async def close(self) -> None:
        await close_model(self._model)


class TimedTools:
    """Implements ``KeepsUnmadeCalls`` for tools that do."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self.seconds = 0.0

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        begun = time.perf_counter()
        try:
            return await self._tools.call(name, arguments, key=key)
        finally:
            self.seconds += time.perf_counter() - begun

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        tools: object = self._tools
        return isinstance(tools, KeepsUnmadeCalls) and await tools.unmade(call, problem)


class TimedScore:
    def __init__(self, score: Score | None) -> None:
        self._score = score
        self.seconds = 0.0

    def __call__(self, messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
        assert self._score is not None
        begun = time.perf_counter()
        try:
            return self._score(messages, run)
        finally:
            self.seconds += time.perf_counter() - begun
