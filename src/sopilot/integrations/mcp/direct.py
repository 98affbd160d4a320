"""Tool calls over HTTP, answered without the library's transport.

For one request the transport opens streams and a message loop, and runs several tasks, of which
nothing is left when it is answered: that takes longer than the call itself. A plain POST of one
``tools/call`` goes to the library's own handler of single requests instead (``serve_one``), with
the same checks, spans and serialization, and is answered byte for byte as the transport would.
Everything else is the transport's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

import mcp_types as types
import pydantic_core
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.integrations.mcp.clients import SESSION_HEADER
from sopilot.integrations.mcp.single_calls import Call, Coming, Exchange, answer, plain_call
from sopilot.integrations.mcp.stateful_clients import Client, Clients

LONGEST_BODY = 4 << 20


PATH = "/mcp"


_JSON, _EVENTS = b"application/json", b"text/event-stream"


_READ = frozenset({b"accept", b"content-type", b"mcp-protocol-version"})


_VERSIONS = {one.encode(): one for one in HANDSHAKE_PROTOCOL_VERSIONS}


_SOON_SECONDS = 0.2
"""After that a client is told that its answer is coming, and is missed when it leaves."""


_PING_SECONDS = 15.0


_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


_TWO_WAY = TransportContext(kind="jsonrpc", can_send_request=True)


_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"cache-control", b"no-cache, no-transform"),
        (b"connection", b"keep-alive"),
        (b"content-type", _EVENTS),
        (b"x-accel-buffering", b"no"),
    ],
}


class Direct:
    """In front of the transport, behind whoever knows the connection."""

    def __init__(
        self,
        app: ASGIApp,
        server: Server[Any],
        *,
        clients: Clients | None = None,
        coming: Coming = lambda owner, key, params: None,
    ) -> None:
        self._app = app
        self._server = server
        self._coming = coming
        self._clients = clients
        """Those with a connection; without, nobody has one."""
        self._working: set[asyncio.Task[dict[str, Any]]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = _plain_version(scope) if scope["type"] == "http" else None
        client = self._clients.of(scope) if self._clients and scope["type"] == "http" else None
        if version is None or (self._clients is not None and client is None):
            await self._app(scope, receive, send)
            return
        body, receive = await read_body(receive)
        message = _read(body) if body is not None else None
        if client is not None and client.asked.take(message):
            await Response(status_code=202)(scope, receive, send)
            return
        call = plain_call(message)
        if call is None:
            await self._app(scope, receive, send)
            return
        answers = _Answers(send, client.id if client is not None else None)
        request = Request(scope, receive)
        context = copy_context()
        if client is not None and SESSION_HEADER not in request.headers:
            context.run(self._coming, client.owner, client.id, call.params)
        work = asyncio.create_task(
            self._answer(call, version, request, answers, client), context=context
        )
        self._working.add(work)
        work.add_done_callback(self._working.discard)
        try:
            await _attended(work, receive, answers)
        finally:
            if client is None:
                work.cancel()  # with a connection, who wants that says so

    async def _answer(
        self,
        call: Call,
        version: str,
        request: Request,
        answers: _Answers,
        client: Client | None,
    ) -> dict[str, Any]:
        metadata = ServerMessageMetadata(request_context=request)
        if client is not None:
            ask = partial(client.ask, answers.tell)
            exchange = Exchange(call, _TWO_WAY, answers.tell, ask, message_metadata=metadata)
            with client.calling(call.id):
                return await answer(self._server, exchange, client.connection, lasting=True)
        exchange = Exchange(call, _TRANSPORT, answers.tell, message_metadata=metadata)
        once = Connection.from_envelope(version, None, None)
        return await answer(self._server, exchange, once, lasting=False)


async def _attended(
    work: asyncio.Task[dict[str, Any]],
    receive: Receive,
    answers: _Answers,
) -> None:
    """Until it is answered, or the client has left: then the call is told so."""
    done, _ = await asyncio.wait({work}, timeout=_SOON_SECONDS)
    if not done:
        left = asyncio.create_task(_left(receive))
        try:
            await answers.begin()
            while not work.done() and not left.done():
                await asyncio.wait(
                    {work, left}, timeout=_PING_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if not work.done() and not left.done():
                    await answers.write(b": ping\r\n\r\n")
        finally:
            left.cancel()
        if not work.done():
            return
    if work.cancelled():
        await answers.begin()
        await answers.end()
    elif answers.begun:
        await answers.write(_event(work.result()))
        await answers.end()
    else:
        await answers.alone(work.result())


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answers:
    """What goes to the client on the stream of its request."""

    def __init__(self, send: Send, connection: str | None) -> None:
        self._send = send
        self._named = [] if connection is None else [(b"mcp-session-id", connection.encode())]
        self.begun = False
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        async with self._turn:
            await self._begin()

    async def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            await self._send({**_START, "headers": [*_START["headers"], *self._named]})

    async def alone(self, message: Mapping[str, Any]) -> None:
        """The answer and nothing else: no stream, so that the client keeps its connection."""
        body = pydantic_core.to_json(message, inf_nan_mode="null")
        length = str(len(body)).encode()
        headers = [(b"content-length", length), (b"content-type", _JSON), *self._named]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def write(self, data: bytes) -> None:
        async with self._turn:
            await self._begin()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def tell(self, message: Mapping[str, Any]) -> None:
        await self.write(_event(message))

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _event(message: Mapping[str, Any]) -> bytes:
    data = pydantic_core.to_json(message, inf_nan_mode="null")
    return b"event: message\r\ndata: " + data + b"\r\n\r\n"


def _plain_version(scope: Scope) -> str | None:
    """The version that a POST of the usual form speaks; ``None`` for one of any other form."""
    if scope["method"] != "POST" or scope["path"] != PATH:
        return None
    said: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _READ:
            if name in said:
                return None
            said[name] = value
    accepted = {one.strip() for one in said.get(b"accept", b"").split(b",")}
    if said.get(b"content-type") != _JSON or not {_JSON, _EVENTS} <= accepted:
        return None
    version = said.get(b"mcp-protocol-version")
    return types.DEFAULT_NEGOTIATED_VERSION if version is None else _VERSIONS.get(version)


def _read(body: bytes) -> object:
    try:
        return pydantic_core.from_json(body)
    except ValueError:
        return None


async def read_body(receive: Receive) -> tuple[bytes | None, Callable[[], Awaitable[Message]]]:
    """The body, and how to read it once more; ``None`` for one that is too long or broke off."""
    read: list[Message] = []
    body = b""
    while True:
        message = await receive()
        read.append(message)
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > LONGEST_BODY:
            whole = None
            break
        if not message.get("more_body", False):
            whole = body
            break

    async def again() -> Message:
        return read.pop(0) if read else await receive()

    return whole, again
