"""Clients without a connection of their own: any server goes on with any of their requests.

In front of the transport, which keeps nothing between requests then. A client that initializes
is given the id of its session as the id of its connection (``mcp-session-id``); with that header
the next request may reach any server of the same store. A client that comes back names its
session when it initializes (``sopilot-session``), and no new one is opened.
"""

from __future__ import annotations

import json

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.integrations.mcp.clients import CONNECTION_HEADER, LOCAL, SESSION_HEADER, STATELESS
from sopilot.integrations.mcp.direct import read_body
from sopilot.integrations.mcp.sessions import Hub
from sopilot.messages.errors import RunEnded, UserMistake

GONE = "there is no such session; connect with `initialize`"


class Connections:
    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self._app = app
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[STATELESS] = True
        user = scope.get("user")
        owner = user.username if isinstance(user, AuthenticatedUser) else LOCAL
        headers = Headers(scope=scope)
        connection = headers.get(CONNECTION_HEADER)
        if connection is None:
            await self._without(owner, headers, scope, receive, send)
            return
        try:
            known = await self._hub.knows(owner, connection)
        except RunEnded:
            await _not_now()(scope, receive, send)
            return
        if not known:
            await PlainTextResponse(GONE, 404)(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._hub.leave(owner, connection)
            await Response(status_code=200)(scope, receive, send)
        elif scope["method"] == "GET":
            # Nobody could say which server has something to tell.
            refused = Response(status_code=405, headers={"Allow": "POST, DELETE"})
            await refused(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _without(
        self, owner: str, headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body, receive = await read_body(receive)
        if body is None or not _initializes(body):
            await self._app(scope, receive, send)
            return
        try:
            session_id = await self._hub.connect(owner, headers.get(SESSION_HEADER))
        except UserMistake:
            await PlainTextResponse(GONE, 404)(scope, receive, send)
            return
        except RunEnded:
            await _not_now()(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[CONNECTION_HEADER] = session_id
            await send(message)

        await self._app(scope, receive, named)


def _not_now() -> Response:
    """The store is not there, or all seats are taken: operators know."""
    return PlainTextResponse("not now", 503, headers={"Retry-After": "1"})


def _initializes(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"
