"""Clients with a connection over HTTP, as the library's transport knows them.

The transport counts a client as idle while it has no request under way. So only those are taken
past it that listen to a stream of their own beside their requests: they are never idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sopilot.integrations.mcp.asking import Waiting
from sopilot.integrations.mcp.clients import CONNECTION_HEADER, LOCAL

_HEADER = CONNECTION_HEADER.encode()


_CANCELLED = "notifications/cancelled"


@dataclass
class Client:
    id: str
    owner: str
    connection: Connection
    streams: int = 0
    asked: Waiting = field(default_factory=Waiting)
    calls: dict[str | int, Callable[[], object]] = field(default_factory=dict)
    """How each of its calls is broken off."""

    @contextmanager
    def calling(self, call_id: str | int) -> Iterator[None]:
        """Inside the task that carries the call out."""
        task, key = asyncio.current_task(), coerce_request_id(call_id)
        assert task is not None
        stop = self.calls[key] = task.cancel
        try:
            yield
        finally:
            if self.calls.get(key) is stop:
                del self.calls[key]

    async def ask(
        self,
        tell: Callable[[Mapping[str, Any]], Awaitable[None]],
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None,
    ) -> dict[str, Any]:
        """On the stream of its call; it answers with a request of its own."""
        said = dict(params or {})
        own_id, answer = self.asked.begin(said, None)
        try:
            await tell({"jsonrpc": "2.0", "id": own_id, "method": method, "params": said})
            return await answer
        finally:
            self.asked.end(own_id)


class Clients:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._known: dict[str, Client] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """To the transport; who listens is noted."""
        client = self._client(scope) if scope["type"] == "http" else None
        if client is None or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        client.streams += 1
        try:
            await self._app(scope, receive, send)
        finally:
            client.streams -= 1

    def of(self, scope: Scope) -> Client | None:
        """Who can be answered past the transport."""
        client = self._client(scope)
        if client is None or not client.streams or not client.connection.initialize_accepted:
            return None
        return client

    def _client(self, scope: Scope) -> Client | None:
        named = [value for name, value in scope["headers"] if name == _HEADER]
        client = self._known.get(named[0].decode("latin-1")) if len(named) == 1 else None
        return client if client is not None and client.owner == _owner(scope) else None

    async def meet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Whatever the library handles comes by here, with the credentials that it has checked."""
        connection = getattr(ctx.session, "_connection", None)
        request = ctx.request
        if isinstance(connection, Connection) and isinstance(request, Request):
            own_id = connection.session_id
            if own_id is not None and own_id not in self._known:
                self._known[own_id] = Client(own_id, _owner(request.scope), connection)
                connection.exit_stack.callback(self._forget, own_id)
            client = self._known.get(own_id or "")
            if client is not None and ctx.method == _CANCELLED:
                named = cancelled_request_id_from_params(ctx.params)
                stop = client.calls.get(coerce_request_id(named)) if named is not None else None
                if stop is not None:
                    stop()
        return await call_next(ctx)

    def _forget(self, own_id: str) -> None:
        client = self._known.pop(own_id, None)
        if client is not None:
            client.asked.close()


def _owner(scope: Scope) -> str:
    user = scope.get("user")
    return user.username if isinstance(user, AuthenticatedUser) else LOCAL
