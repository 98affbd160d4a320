"""Requests to a model: retries with back-off, and the failure that is not the model's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import RunEnded, mistake
from sopilot.protocols import Model, ModelReply, ModelRequest, ToolCall, Usage

Sleep = Callable[[float], Awaitable[None]]
CONTEXT: Final = "context"
"""The kind of failure that is the model's own limit: the request is longer than it can read."""
EMPTY: Final = "empty"
"""The kind of an answer that came and holds nothing."""


class ProviderError(RunEnded):
    """An error of a model adapter. ``retryable`` if the same request may succeed later;
    ``retry_after`` is the wait that the provider requests. ``kind`` is for statistics:
    ``http-429``, ``timeout``, ``not-json``, ``empty``, … ``usage`` is the cost of an unusable
    answer."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "provider",
        retryable: bool = True,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage = usage or Usage()


class InfrastructureFailure(RunEnded):
    """The provider failed for good, after so many ``attempts``."""

    def __init__(self, message: str, attempts: int, *, kind: str = "provider") -> None:
        super().__init__(message)
        self.attempts = attempts
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Retries:
    """The waiting time grows by ``factor`` from ``first_seconds`` up to ``longest_seconds``."""

    attempts: int = 5
    first_seconds: float = 1.0
    factor: float = 2.0
    longest_seconds: float = 30.0

    def pause(self, failed: int, retry_after: float | None) -> float:
        """Seconds to wait after the ``failed``-th failure in a row."""
        own = self.first_seconds * self.factor ** (failed - 1)
        return min(max(own, retry_after or 0.0), self.longest_seconds)


@dataclass(slots=True)
class Attempts:
    """The state of a request that may be cut off: attempts ``made``, with the present one, the
    last ``problem``, and the cost of ``discarded`` answers."""

    made: int = 0
    problem: ProviderError | None = None
    discarded: Usage = field(default_factory=Usage)


async def complete_with_retries(
    model: Model,
    request: ModelRequest,
    retries: Retries,
    *,
    sleep: Sleep = asyncio.sleep,
    attempts: Attempts | None = None,
) -> ModelReply:
    """The reply, or ``InfrastructureFailure``.

    A request that takes longer than ``timeout_seconds`` is given up and counts
    as a failure of the provider. ``attempts`` is kept up to date meanwhile.
    """
    seen = attempts or Attempts()
    for attempt in range(1, retries.attempts + 1):
        seen.made = attempt
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return _reply(model, await model.complete(request))
        except TimeoutError:
            problem = ProviderError(
                f"no answer within {request.timeout_seconds:g} s", kind="timeout"
            )
        except ProviderError as error:
            problem = error
        seen.problem = problem
        seen.discarded += problem.usage
        if not problem.retryable or attempt == retries.attempts:
            why = f"{model.name}: {problem}"
            raise InfrastructureFailure(why, attempt, kind=problem.kind) from problem
        if problem.kind != EMPTY:  # a provider that answers needs no pause
            await sleep(retries.pause(attempt, problem.retry_after))
    raise InfrastructureFailure(f"{model.name}: no attempt was allowed", 0)


def _reply(model: Model, value: object) -> ModelReply:
    """Reject malformed replies here: a model may be anybody's code."""
    if (
        isinstance(value, ModelReply)
        and isinstance(value.content, str)
        and isinstance(value.tool_calls, tuple | list)
        and all(isinstance(call, ToolCall) for call in value.tool_calls)
    ):
        return value
    raise mistake(
        "bad-model-reply",
        "`complete` didn't return a ModelReply with text and a tuple of ToolCalls",
        Place(f"the model `{model.name}`"),
        "write `return ModelReply(text, (ToolCall(id, name, arguments),))`; both may be left out",
    )
