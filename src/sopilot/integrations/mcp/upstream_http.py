"""Requests to a server over HTTP, on connections that are kept.

For servers that speak 2026-07-28: each request is a POST by itself and its answer the response,
and to hang up is to cancel. What else they may want of a client (a redirect, a cookie) is the
library's: from then on it has all requests.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import httpx2
import mcp_types as types
import pydantic_core
from mcp.shared.exceptions import MCPError

from sopilot.integrations.mcp.asking import Result, Waiting
from sopilot.integrations.mcp.call_link import ProgressReport
from sopilot.integrations.mcp.lines import LONGEST

_IDLE_SECONDS = 4.0
"""After that a server may be about to close the connection."""


_END_SECONDS = 1.0
"""For a stream to end after the answer."""


_LONGEST_HEADER = 1 << 20


_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


_OK, _GONE = 200, 404


_JSON, _EVENTS = "application/json", "text/event-stream"


Told = Callable[[dict[str, Any]], Awaitable[None]]


def speaks_plainly(url: str) -> bool:
    """Whether requests go straight to the server."""
    parts = urlsplit(url)
    proxied = any(os.environ.get(one) or os.environ.get(one.upper()) for one in _PROXIES)
    return not proxied and not parts.username and parts.scheme in ("http", "https")


class UpstreamHttp:
    """``tell`` is given what a server says beside its answers. ``off``: the library has it all."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        tell: Told,
        changed: Callable[[], None] = lambda: None,
        gone: Callable[[], None] = lambda: None,
    ) -> None:
        """``gone`` is told when the server can't be reached or breaks off during a request."""
        parts = urlsplit(url)
        self._host, self._secure = parts.hostname or "", parts.scheme == "https"
        self._port = parts.port or (443 if self._secure else 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fixed = {
            "host": parts.netloc,
            "accept": f"{_JSON}, {_EVENTS}",
            "content-type": _JSON,
            **{name.lower(): value for name, value in headers.items()},
        }
        self._head = f"POST {path} HTTP/1.1\r\n" + _lines(fixed)
        self._timeout = timeout
        self._tell = tell
        self.gone = gone
        self._waiting = Waiting(changed)
        self._idle: list[_Exchange] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.off = False

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        return httpx2.create_ssl_context() if self._secure else None

    def ask(
        self,
        method: str,
        params: dict[str, Any],
        headers: Mapping[str, str],
        progress: ProgressReport | None,
    ) -> asyncio.Future[Result]:
        own_id, answer = self._waiting.begin(params, progress)
        message = {"jsonrpc": "2.0", "id": own_id, "method": method, "params": params}
        body = pydantic_core.to_json(message, inf_nan_mode="null")
        head = f"{self._head}{_lines(headers)}content-length: {len(body)}\r\n\r\n"
        request = _Request(own_id, head.encode("latin-1") + body, self)
        answer.add_done_callback(lambda answer: self._ended(request, answer))
        now = asyncio.get_running_loop().time()
        while self._idle:
            kept = self._idle.pop()
            if now - kept.used_at < _IDLE_SECONDS:
                kept.begin(request)
                return answer
            kept.close()
        self._do(self._connect(request))
        return answer

    async def _connect(self, request: _Request) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(min(self._timeout, 30.0)):
                _, made = await loop.create_connection(
                    _Exchange, self._host, self._port, ssl=self._tls
                )
        except OSError as problem:  # no answer in time is one, too
            self.gone()
            self.fail(request, MCPError(types.CONNECTION_CLOSED, str(problem) or "no connection"))
            return
        if request.over:
            self.keep(made)
        else:
            made.begin(request)

    def _ended(self, request: _Request, answer: asyncio.Future[Result]) -> None:
        self._waiting.end(request.own_id)
        request.over = True
        carrier = request.carried_by
        if carrier is None or not carrier.carries(request):
            return
        if answer.cancelled() or answer.exception() is not None:
            carrier.close()
        else:  # the answer came as an event: the end of the stream follows, or is not waited for
            loop = asyncio.get_running_loop()
            loop.call_later(_END_SECONDS, carrier.leave, request)

    def close(self) -> None:
        self._waiting.close()
        for kept in self._idle:
            kept.close()
        self._idle.clear()

    # --- what comes of a request ----------------------------------------------------

    def keep(self, connection: _Exchange) -> None:
        if self._waiting.closed:
            connection.close()
        else:
            connection.rest(self, asyncio.get_running_loop().time())
            self._idle.append(connection)

    def lost(self, connection: _Exchange) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def heard(self, request: _Request, data: bytes) -> None:
        """A message of the response: the answer, or what is told before it."""
        try:
            message = pydantic_core.from_json(data)
        except ValueError as problem:
            said = f"Failed to parse JSON response: {problem}"
            self.fail(request, MCPError(types.PARSE_ERROR, said))
            return
        if not isinstance(message, dict):
            return
        if "method" not in message and message.get("id") != request.own_id:
            return  # somebody else's answer comes with their own request
        if not self._waiting.take(message) and "method" in message:
            self._do(self._tell(message))

    def refused(self, request: _Request, status: int, body: bytes) -> None:
        try:
            error = types.ErrorData.model_validate(pydantic_core.from_json(body)["error"])
        except (ValueError, TypeError, KeyError):
            error = types.ErrorData(
                code=types.INTERNAL_ERROR, message="Server returned an error response"
            )
            if status == _GONE:
                error = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Not Found")
        self.fail(request, MCPError.from_error_data(error))

    def fail(self, request: _Request, problem: MCPError) -> None:
        self._waiting.fail(request.own_id, problem)

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Request:
    __slots__ = ("carried_by", "data", "over", "own_id", "wire")

    def __init__(self, own_id: str, data: bytes, wire: UpstreamHttp) -> None:
        self.own_id = own_id
        self.data = data
        self.wire = wire
        self.carried_by: _Exchange | None = None
        self.over = False


class _Exchange(asyncio.Protocol):
    """One connection, with one request at a time; the callbacks are the parser's."""

    def __init__(self) -> None:
        self.used_at = 0.0
        self._request: _Request | None = None
        self._wire: UpstreamHttp | None = None

    def begin(self, request: _Request) -> None:
        self._request, self._wire = request, request.wire
        request.carried_by = self
        self._parser = httptools.HttpResponseParser(self)
        self._kind, self._body, self._event = "", bytearray(), bytearray()
        self._odd, self._unheard = "", 0
        self._transport.write(request.data)

    def rest(self, wire: UpstreamHttp, now: float) -> None:
        self._wire, self.used_at = wire, now

    def carries(self, request: _Request) -> bool:
        return self._request is request

    def leave(self, request: _Request) -> None:
        if self._request is request:
            self.close()

    def close(self) -> None:
        self._request = None
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        if self._request is None:
            self._transport.abort()
            return
        self._unheard += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self._fail(f"this is no HTTP: {problem}")
            self.close()
        if self._unheard > _LONGEST_HEADER:
            self._fail("a header without an end")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._wire is not None:
            self._wire.lost(self)
            if self._request is not None:
                self._wire.gone()
        self._fail(str(exc) if exc else "Connection closed")

    def _fail(self, why: str, code: int = types.CONNECTION_CLOSED) -> None:
        request, self._request = self._request, None
        if request is not None:
            request.wire.fail(request, MCPError(code, why))

    # --- for the parser -------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._unheard, name = 0, name.lower()
        if name == b"content-type":
            self._kind = value.decode("latin-1").partition(";")[0].strip().lower()
        elif name in (b"set-cookie", b"content-encoding"):
            self._odd = name.decode()

    def on_body(self, body: bytes) -> None:
        self._unheard = 0
        if len(self._body) + len(self._event) + len(body) > LONGEST:
            self._fail("an answer without an end")
            self.close()
            return
        if self._kind != _EVENTS or self._parser.get_status_code() != _OK:
            self._body += body
            return
        if self._event.endswith(b"\r"):  # the two signs that end a line came in two pieces
            self._event.pop()
            body = b"\r" + body
        self._event += body.replace(b"\r\n", b"\n")
        if b"\n\n" in self._event:
            *events, self._event = self._event.split(b"\n\n")
            for event in events:
                self._hear(event)

    def _hear(self, event: bytearray) -> None:
        lines = (line for line in event.split(b"\n") if line.startswith(b"data:"))
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines)
        if data and self._request is not None:
            self._request.wire.heard(self._request, bytes(data))

    def on_message_complete(self) -> None:
        request, self._request = self._request, None
        status = self._parser.get_status_code()
        if request is None:
            return
        if status < _OK:  # word that the answer is coming
            self._request, self._kind, self._odd = request, "", ""
            return
        wire = request.wire
        if self._odd or 300 <= status < 400:
            wire.off = True
        if status >= 400:
            wire.refused(request, status, bytes(self._body))
        elif status == _OK and self._kind == _JSON and "encoding" not in self._odd:
            wire.heard(request, bytes(self._body))
        elif status != _OK or self._kind != _EVENTS:
            said = f"this is no answer: {status} {self._kind or self._odd}"
            wire.fail(request, MCPError(types.INVALID_REQUEST, said))
        if not request.over:  # whatever it was, no answer follows
            wire.fail(request, MCPError(types.CONNECTION_CLOSED, "ended without a response"))
        if self._parser.should_keep_alive():
            wire.keep(self)
        else:
            self._transport.close()


def _lines(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if any(one in "\r\n\0" for one in name + value):
            raise MCPError(types.INVALID_PARAMS, f"the header `{name}` cannot be sent")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
