"""A user whom a language model plays."""

from __future__ import annotations

from typing import Final

from sopilot.agent.retries import EMPTY, Attempts, ProviderError, Retries, complete_with_retries
from sopilot.protocols import Message, Model, ModelReply, ModelRequest, Usage

END: Final = "###END###"

RULES: Final = (
    "You play a user who talks to a service agent. Stay in your role, write only what the user "
    "would say, one short message at a time. Give a value when you are asked for it and you know "
    "it; never make one up. When your request was carried out or refused for good, answer with "
    f"{END} and nothing else."
)
FIRST_QUESTION: Final = "(The agent is ready. What do you want?)"


class ModelUser:
    """``instructions`` say who the user is, what it wants and what it knows."""

    def __init__(
        self,
        model: Model,
        instructions: str,
        request: str,
        *,
        retries: Retries | None = None,
        timeout_seconds: float = 600.0,
        temperature: float | None = 0.0,
    ) -> None:
        self._model = model
        self._request = request
        self._temperature = temperature
        self.usage = Usage()
        """The cost of its answers, unusable ones included."""
        self._retries = retries or Retries()
        self._timeout = timeout_seconds
        # Seen from the user's side: what the agent says comes from outside.
        self._messages = [
            Message("system", f"{RULES}\n\n{instructions}"),
            Message("user", FIRST_QUESTION),
            Message("assistant", request),
        ]

    def opening(self) -> str:
        return self._request

    async def reply(self, message: str) -> str | None:
        self._messages.append(Message("user", message))
        request = ModelRequest(
            tuple(self._messages), temperature=self._temperature, timeout_seconds=self._timeout
        )
        attempts = Attempts()
        try:
            reply = await complete_with_retries(self, request, self._retries, attempts=attempts)
        finally:
            self.usage += attempts.discarded
        self.usage += reply.usage
        text = reply.content.strip()
        self._messages.append(Message("assistant", text))
        return None if END in text else text

    async def close(self) -> None:
        """Lets go of the model's connections, where it holds any."""
        close = getattr(self._model, "close", None)
        if close is not None:
            await close()

    @property
    def name(self) -> str:
        return f"the user ({self._model.name})"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The model's reply. A user who says nothing has not left: the provider has failed."""
        reply = await self._model.complete(request)
        if not reply.content.strip():
            raise ProviderError("the reply is empty", kind=EMPTY, usage=reply.usage)
        return reply
