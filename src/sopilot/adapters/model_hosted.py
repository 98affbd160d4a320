"""Hosted models as ``provider/name``, through any-llm (extra ``hosted``)."""

from __future__ import annotations

from typing import Any

from sopilot.adapters.model_wire import read_reply, wire_messages, wire_tools
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import ModelReply, ModelRequest

_LASTING = (
    "AuthenticationError",
    "ContextLengthExceededError",
    "ContentFilterError",
    "InsufficientFundsError",
    "InvalidRequestError",
    "MissingApiKeyError",
    "ModelNotFoundError",
    "UnsupportedParameterError",
    "UnsupportedProviderError",
)


class HostedModel:
    """Keys come from the environment, under the names that the provider's own library uses."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._client: Any = None

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._model}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        library = _library()
        lasting = tuple(
            getattr(library.exceptions, name)
            for name in _LASTING
            if hasattr(library.exceptions, name)
        )
        if self._client is None:
            self._client = self._connect(library)
        try:
            completion = await self._client.acompletion(
                self._model,
                wire_messages(request.messages),
                tools=wire_tools(request.tools) or None,
                temperature=request.temperature,
                timeout=request.timeout_seconds,
            )
        except lasting as error:
            raise ProviderError(f"{type(error).__name__}: {error}", retryable=False) from error
        except (library.exceptions.AnyLLMError, OSError) as error:
            raise ProviderError(f"{type(error).__name__}: {error}") from error
        return read_reply(completion.model_dump())

    def _connect(self, library: Any) -> Any:
        try:
            # The loop owns the retries: two layers of them multiply.
            return library.AnyLLM.create(self._provider, unified_exceptions=True, max_retries=0)
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
