"""One ``tools/call``, past the library's message loops and to its handler of requests.

For one request the loops open streams, scopes and tasks, of which nothing is left when it is
answered; that takes longer than the call itself. Validation, spans and serialization are the
library's still.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from sopilot.integrations.logs import LOG

CALL = "tools/call"


_KEYS = frozenset({"jsonrpc", "id", "method", "params"})


Answer = types.JSONRPCResponse | types.JSONRPCError


Tell = Callable[[Mapping[str, Any]], Awaitable[None]]


Ask = Callable[[str, Mapping[str, Any] | None, CallOptions | None], Awaitable[dict[str, Any]]]


Coming = Callable[[str, str, Mapping[str, Any]], None]
"""Told of a call as it arrives: whose, in which conversation, with what."""


class Call(NamedTuple):
    id: str | int
    params: dict[str, Any]


def plain_call(message: object) -> Call | None:
    """The call, if it is one of the usual form."""
    if type(message) is not dict or not message.keys() <= _KEYS:
        return None
    named, params = message.get("id"), message.get("params")
    if message.get("jsonrpc") != "2.0" or message.get("method") != CALL:
        return None
    if type(params) is dict and isinstance(named, int | str) and not isinstance(named, bool):
        return Call(named, params)
    return None


@dataclass
class Exchange:
    """The library's context of one request: how its client is told things, and asked, where it
    can be."""

    call: Call
    transport: TransportContext
    tell: Tell
    ask: Ask | None = None
    message_metadata: ServerMessageMetadata | None = None
    answered: bool = False

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Hardly anybody asks, and to make one takes a while."""
        return anyio.Event()

    @property
    def request_id(self) -> str | int:
        return self.call.id

    @property
    def can_send_request(self) -> bool:
        return self.ask is not None and not self.answered

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if self.ask is None or self.answered:
            raise NoBackChannelError(method)
        return await self.ask(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        if not self.answered:
            said = {} if params is None else {"params": dict(params)}
            await self.tell({"jsonrpc": "2.0", "method": method, **said})

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        token = progress_token_from_params(self.call.params)
        if token is None:
            return
        said: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            said["total"] = total
        if message is not None:
            said["message"] = message
        await self.notify("notifications/progress", said)


async def answer(
    server: Server[Any], exchange: Exchange, connection: Connection, *, lasting: bool
) -> dict[str, Any]:
    """The message that answers the call. ``lasting``: the connection is there for more."""
    call = exchange.call
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": call.id}
    try:
        if lasting:
            runner = ServerRunner(server, connection, {})
            return {**said, "result": await runner.on_request(exchange, CALL, call.params)}
        once = serve_one(
            server, exchange, CALL, call.params, connection=connection, lifespan_state={}
        )
        return {**said, "result": await once}
    except Exception as problem:
        error = handler_exception_to_error_data(problem)
        if error is None and connection.protocol_version in MODERN_PROTOCOL_VERSIONS:
            error = modern_error_data(problem)
        elif error is None:
            LOG.exception("a call was not handled")
            error = types.ErrorData(code=0, message=str(problem))
        return {**said, "error": error.model_dump(mode="json", by_alias=True, exclude_unset=True)}
    finally:
        exchange.answered = True
