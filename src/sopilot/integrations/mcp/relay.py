"""What an upstream asks of the client whose call it carries out, and what it tells it.

A server may want a model's words (sampling), a form filled in by the user (elicitation) or the
client's folders (roots), and it logs. Each goes to the client that has the call under way, and
to no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from sopilot.integrations.mcp.clients import Context

Answer = TypeVar("Answer", bound=BaseModel)


LEVELS: Sequence[types.LoggingLevel] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
"""As the protocol orders them."""


class Relay:
    """The client behind one request. ``key`` is the same for all requests of one conversation;
    of logs it wants to see those of ``level`` and above."""

    def __init__(self, ctx: Context, key: object, level: types.LoggingLevel | None = None) -> None:
        self._session = ctx.session
        self._request_id = ctx.request_id
        self.key = key
        self._least = LEVELS.index(level) if level is not None else 0

    async def sampled(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        needs = types.ClientCapabilities(sampling=types.SamplingCapability())
        request = types.CreateMessageRequest(params=params)
        if params.tools:
            return await self._asked(request, types.CreateMessageResultWithTools, needs)
        return await self._asked(request, types.CreateMessageResult, needs)

    async def elicited(
        self, upstream: str, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """The user is told who asks: it is not the runtime."""
        said = params.model_copy(update={"message": f"`{upstream}` asks: {params.message}"})
        needs = types.ClientCapabilities(elicitation=types.ElicitationCapability())
        return await self._asked(types.ElicitRequest(params=said), types.ElicitResult, needs)

    async def roots(self) -> types.ListRootsResult | types.ErrorData:
        needs = types.ClientCapabilities(roots=types.RootsCapability())
        return await self._asked(types.ListRootsRequest(), types.ListRootsResult, needs)

    async def _asked(
        self,
        request: types.ServerRequest,
        answer: type[Answer],
        needs: types.ClientCapabilities,
    ) -> Answer | types.ErrorData:
        if not self._session.check_client_capability(needs):
            return nobody(request.method)
        with_it = ServerMessageMetadata(related_request_id=self._request_id)
        try:
            return await self._session.send_request(request, answer, metadata=with_it)
        except MCPError as problem:
            return problem.error
        except (OSError, ValidationError):
            return nobody(request.method)

    async def tell(self, notice: types.ServerNotification, *, of_call: bool) -> None:
        """``of_call``: beside the answer to the call, and not on the connection's own stream."""
        match notice:
            case types.LoggingMessageNotification(params=entry):
                if LEVELS.index(entry.level) < self._least:
                    return
        with suppress(OSError, MCPError):  # a client that is gone wants to hear nothing
            await self._session.send_notification(notice, self._request_id if of_call else None)


def nobody(method: str) -> types.ErrorData:
    return types.ErrorData(
        code=types.INVALID_REQUEST, message=f"`{method}`: there is no client that can be asked"
    )
