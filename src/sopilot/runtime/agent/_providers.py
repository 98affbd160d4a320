"""Requests to a model: retries with back-off, and the failure that is not the model's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.session.protocols import Model, ModelReply, ModelRequest

Sleep = Callable[[float], Awaitable[None]]


class ProviderError(RunEnded):
    """What a model adapter raises. ``retryable`` if the same request may succeed later;
    ``retry_after`` is how long the provider asked to wait."""

    def __init__(
        self, message: str, *, retryable: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class InfrastructureFailure(RunEnded):
    """The provider failed for good. ``attempts`` were made."""

    def __init__(self, message: str, attempts: int) -> None:
        super().__init__(message)
        self.attempts = attempts


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
    """What a request came to so far, for whoever cuts it off: attempts ``made``, the one under
    way included, and the last ``problem``."""

    made: int = 0
    problem: ProviderError | None = None


async def complete_with_retries(
    model: Model,
    request: ModelRequest,
    retries: Retries,
    *,
    sleep: Sleep = asyncio.sleep,
    attempts: Attempts | None = None,
) -> tuple[ModelReply, int]:
    """The reply and how many attempts it took, or ``InfrastructureFailure``.

    A request that takes longer than ``timeout_seconds`` is given up and counts
    as a failure of the provider. ``attempts`` is kept up to date meanwhile.
    """
    seen = attempts or Attempts()
    for attempt in range(1, retries.attempts + 1):
        seen.made = attempt
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await model.complete(request), attempt
        except TimeoutError:
            problem = ProviderError(f"no answer within {request.timeout_seconds:g} s")
        except ProviderError as error:
            problem = error
        seen.problem = problem
        if not problem.retryable or attempt == retries.attempts:
            raise InfrastructureFailure(f"{model.name}: {problem}", attempt) from problem
        await sleep(retries.pause(attempt, problem.retry_after))
    raise InfrastructureFailure(f"{model.name}: no attempt was allowed", 0)
