"""Hosted models as ``provider/name``, through any-llm (extra ``hosted``)."""

from __future__ import annotations

from typing import Any

from sopilot.agent.retries import CONTEXT, ProviderError
from sopilot.messages.errors import UserMistake
from sopilot.models.wire import (
    FILTER,
    LONGEST_SHOWN,
    check_served,
    read_reply,
    wire_messages,
    wire_sampling,
    wire_tools,
)
from sopilot.protocols import ModelReply, ModelRequest

_LASTING = {
    "AuthenticationError": "http-401",
    "ContextLengthExceededError": CONTEXT,
    "ContentFilterError": FILTER,
    "InsufficientFundsError": "http-402",
    "InvalidRequestError": "http-400",
    "MissingApiKeyError": "http-401",
    "ModelNotFoundError": "http-404",
    "UnsupportedParameterError": "http-400",
    "UnsupportedProviderError": "http-404",
}

_PASSING = {"RateLimitError": "http-429", "ProviderError": "http-500", "TimeoutError": "timeout"}


class HostedModel:
    """A provider's model. The provider's library reads its key from the environment, unless
    ``key`` is set. If ``served`` is set, an answer by any other model is a failure."""

    def __init__(
        self, provider: str, model: str, *, key: str | None = None, served: str | None = None
    ) -> None:
        self._provider = provider
        self._model = model
        self._key = key
        self._served = served
        self._client: Any = None

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._model}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        library = _library()
        if self._client is None:
            self._client = self._connect(library)
        try:
            completion = await self._client.acompletion(
                self._model,
                wire_messages(request.messages),
                tools=wire_tools(request.tools) or None,
                timeout=request.timeout_seconds,
                **wire_sampling(request),
            )
            answer = completion.model_dump()
        except Exception as error:  # providers' libraries raise errors of any kind
            name = type(error).__name__
            raise ProviderError(
                f"{name}: {str(error)[:LONGEST_SHOWN]}",
                kind=_LASTING.get(name) or _PASSING.get(name, "provider"),
                retryable=name not in _LASTING,
            ) from error
        return check_served(read_reply(answer), self._served)

    def _connect(self, library: Any) -> Any:
        try:
            # The loop owns the retries: two layers of them multiply.
            return library.AnyLLM.create(
                self._provider, api_key=self._key, unified_exceptions=True, max_retries=0
            )
        except ImportError as error:
            raise UserMistake(f"`{self._provider}` needs another library: {error}") from error
        except library.exceptions.AnyLLMError as error:
            raise UserMistake(f"`{self.name}` cannot be used: {error}") from error


def _library() -> Any:
    try:
        import any_llm
        import any_llm.exceptions
    except ImportError as error:
        raise UserMistake("hosted models need: pip install 'sopilot[hosted]'") from error
    return any_llm
