"""Tool calls of clients without a connection, answered without the library's transport.

For one request the transport opens streams and a message loop, and runs several tasks, of which
nothing is left when it is answered: that takes longer than the call itself. A plain POST of one
``tools/call`` goes to the library's own handler of single requests instead (``serve_one``), with
the same checks, spans and serialization, and is answered byte for byte as the transport would.
Everything else is the transport's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anyio
import mcp_types as types
import pydantic_core
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.adapters.logs import LOG

LONGEST_BODY = 4 << 20
PATH = "/mcp"
_CALL = "tools/call"
_KEYS = frozenset({"jsonrpc", "id", "method", "params"})
_JSON, _EVENTS = b"application/json", b"text/event-stream"
_READ = frozenset({b"accept", b"content-type", b"mcp-protocol-version"})
_VERSIONS = {one.encode(): one for one in HANDSHAKE_PROTOCOL_VERSIONS}
_SOON_SECONDS = 0.2
"""After that a client is told that its answer is coming, and is missed when it leaves."""
_PING_SECONDS = 15.0
_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)
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


class _Call(NamedTuple):
    id: str | int
    params: dict[str, Any]


class Direct:
    """In front of the transport, behind whoever knows the connection."""

    def __init__(self, app: ASGIApp, server: Server[Any]) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = _plain_version(scope) if scope["type"] == "http" else None
        if version is None:
            await self._app(scope, receive, send)
            return
        body, receive = await read_body(receive)
        call = _plain_call(body) if body is not None else None
        if call is None:
            await self._app(scope, receive, send)
            return
        answers = _Answers(send)
        work = asyncio.create_task(self._answer(call, version, Request(scope, receive), answers))
        try:
            await _attended(work, receive, answers)
        finally:
            work.cancel()

    async def _answer(
        self, call: _Call, version: str, request: Request, answers: _Answers
    ) -> types.JSONRPCResponse | types.JSONRPCError:
        exchange = _Exchange(
            call.id,
            ServerMessageMetadata(request_context=request),
            progress_token_from_params(call.params),
            answers,
        )
        try:
            result = await serve_one(
                self._server,
                exchange,
                _CALL,
                call.params,
                connection=Connection.from_envelope(version, None, None),
                lifespan_state={},
            )
        except Exception as problem:
            error = handler_exception_to_error_data(problem)
            if error is None:
                LOG.exception("a call was not handled")
                error = types.ErrorData(code=0, message=str(problem))
            return types.JSONRPCError(jsonrpc="2.0", id=call.id, error=error)
        return types.JSONRPCResponse(jsonrpc="2.0", id=call.id, result=result)


async def _attended(
    work: asyncio.Task[types.JSONRPCResponse | types.JSONRPCError],
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
    await answers.write(_event(work.result()))
    await answers.end()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answers:
    """What goes to the client on the stream of its request."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._send({**_START, "headers": list(_START["headers"])})

    async def write(self, data: bytes) -> None:
        async with self._turn:
            await self.begin()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass
class _Exchange:
    """The library's context of one request whose client can be told things, and not be asked."""

    request_id: str | int
    message_metadata: ServerMessageMetadata
    progress_token: str | int | None
    answers: _Answers
    transport: TransportContext = _TRANSPORT
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        said = dict(params) if params is not None else None
        told = types.JSONRPCNotification(jsonrpc="2.0", method=method, params=said)
        await self.answers.write(_event(told))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        if self.progress_token is None:
            return
        said: dict[str, Any] = {"progressToken": self.progress_token, "progress": progress}
        if total is not None:
            said["total"] = total
        if message is not None:
            said["message"] = message
        await self.notify("notifications/progress", said)


def _event(message: types.JSONRPCMessage) -> bytes:
    text = message.model_dump_json(by_alias=True, exclude_unset=True)
    return f"event: message\r\ndata: {text}\r\n\r\n".encode()


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


def _plain_call(body: bytes) -> _Call | None:
    try:
        message = pydantic_core.from_json(body)
    except ValueError:
        return None
    if type(message) is not dict or not message.keys() <= _KEYS:
        return None
    named, params = message.get("id"), message.get("params")
    if message.get("jsonrpc") != "2.0" or message.get("method") != _CALL:
        return None
    if type(params) is dict and isinstance(named, int | str) and not isinstance(named, bool):
        return _Call(named, params)
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
