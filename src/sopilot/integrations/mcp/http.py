"""The server over streamable HTTP: the SDK's transport behind tokens, host checks and quotas."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import json
import signal
import socket
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp.client_call import (
    CONNECTION_HEADER,
    SESSION_HEADER,
    STATELESS,
    owner_of,
)
from sopilot.integrations.mcp.health import AdminApp, Health, ObservedApp
from sopilot.integrations.mcp.options import PATH, HttpSettings, Limits, in_url
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.messages.errors import RunEnded, SopilotError, UserMistake, mistake

_MINUTE = 60.0
_LONGEST_BODY = 4 << 20
_LONGEST_HEADERS = 64 << 10
_NO_SESSION = "there is no such session; connect with `initialize`"

# --- who gets in ----------------------------------------------------------------------


class Tokens:
    """Verifies bearer tokens; replaceable while the server runs."""

    def __init__(self, settings: HttpSettings) -> None:
        self.replace(settings)

    def replace(self, settings: HttpSettings) -> None:
        self._digests = {owner: _digest(token) for owner, token in settings.tokens.items()}

    async def verify_token(self, token: str) -> AccessToken | None:
        digest, owner = _digest(token.strip()), None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):  # all are compared: time tells nothing
                owner = name
        return None if owner is None else AccessToken(token="", client_id=owner, scopes=[])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


class HostCheck:
    """Refuses foreign Host and Origin headers before anything reads the request."""

    def __init__(self, app: ASGIApp, security: TransportSecurityMiddleware) -> None:
        self._app = app
        self._security = security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = await self._security.validate_request(Request(scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class HttpApp:
    """The whole application. ``admit`` replaces tokens, hosts and origins while it runs."""

    def __init__(self, server: McpServer, settings: HttpSettings) -> None:
        settings.check()
        self._tokens = Tokens(settings)
        self._security = TransportSecurityMiddleware(_security(settings))
        manager = StreamableHTTPSessionManager(
            server.protocol,
            stateless=settings.stateless,
            # A stream per call would cost a connection per call, and can't be asked back anyway.
            json_response=settings.stateless,
            session_idle_timeout=settings.limits.idle_seconds,
            max_request_body_size=_LONGEST_BODY,
        )
        app: ASGIApp = StreamableHTTPASGIApp(manager)
        if settings.stateless:
            app = SessionHeader(app, server.pool)
        app = Connections(app, settings.limits, server.leave)
        middleware = [Middleware(HostCheck, self._security)]
        if settings.tokens:
            app = RequireAuthMiddleware(app, [])
            backend = BearerAuthBackend(self._tokens)
            middleware.append(Middleware(AuthenticationMiddleware, backend=backend))
        self.starlette = Starlette(
            routes=[Route(PATH, endpoint=app)],
            middleware=middleware,
            lifespan=lambda app: manager.run(),
        )

    def admit(self, settings: HttpSettings) -> None:
        self._tokens.replace(settings)
        self._security.settings = _security(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.starlette(scope, receive, send)


def _security(settings: HttpSettings) -> TransportSecuritySettings:
    return TransportSecuritySettings(
        allowed_hosts=settings.allowed_hosts, allowed_origins=settings.allowed_origins
    )


# --- connections and sessions ---------------------------------------------------------


class SessionHeader:
    """Connections without state: the connection id that a client gets is its session's id.

    The SDK issues none in this mode. With the id, the next request may reach any server of the
    same store. A client that comes back names its session in `sopilot-session` when it
    initializes.
    """

    def __init__(self, app: ASGIApp, pool: SessionPool) -> None:
        self._app = app
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STATELESS] = True
        owner, headers = owner_of(scope), Headers(scope=scope)
        connection = headers.get(CONNECTION_HEADER)
        try:
            if connection is None:
                body, receive = await _read_body(receive)
                if _is_initialize(body):
                    opened = await self._pool.connect(owner, headers.get(SESSION_HEADER))
                    send = _with_header(send, opened)
                await self._app(scope, receive, send)
                return
            known = await self._pool.owns(owner, connection)
        except UserMistake:
            await PlainTextResponse(_NO_SESSION, 404)(scope, receive, send)
            return
        except RunEnded:
            message = "session store unavailable; retry in a few seconds"
            answer = PlainTextResponse(message, 503, headers={"Retry-After": "1"})
            await answer(scope, receive, send)
            return
        if not known:
            await PlainTextResponse(_NO_SESSION, 404)(scope, receive, send)
        elif scope["method"] == "DELETE":
            await Response(status_code=200)(scope, receive, send)
        elif scope["method"] == "GET":
            # No server knows which one of them has something to report.
            refusal = Response(status_code=405, headers={"Allow": "POST, DELETE"})
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _with_header(send: Send, session_id: str) -> Send:
    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)[CONNECTION_HEADER] = session_id
        await send(message)

    return named


async def _read_body(receive: Receive) -> tuple[bytes, Callable[[], Awaitable[Message]]]:
    """The body, and a way to receive it once more. Empty if it is too long or broke off."""
    messages: list[Message] = []
    body, more = b"", True
    while more:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if message["type"] != "http.request" or len(body) > _LONGEST_BODY:
            body, more = b"", False

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return body, again


def _is_initialize(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


# --- quotas ---------------------------------------------------------------------------


class Connections:
    """Limits per owner: requests under way, connected clients, and new clients per minute.

    ``leave`` releases what a client held when it closes its connection.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, leave: Callable[[str, str], Awaitable[None]]
    ) -> None:
        self._app = app
        self._limits = limits
        self._leave = leave
        self._requests: Counter[str] = Counter()
        self._clients: defaultdict[str, OrderedDict[str, float]] = defaultdict(OrderedDict)
        """By owner and connection id, when it was last used."""
        self._initialized: defaultdict[str, list[float]] = defaultdict(list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        owner, key = owner_of(scope), Headers(scope=scope).get(CONNECTION_HEADER, "")
        problem = self._problem(owner, key, asyncio.get_running_loop().time())
        if problem:
            refusal = PlainTextResponse(problem, 429, headers={"Retry-After": "1"})
            await refusal(scope, receive, send)
            return
        closed = False

        async def watch(message: Message) -> None:
            nonlocal closed
            if message["type"] == "http.response.start" and key:
                closed = scope["method"] == "DELETE" and message["status"] == 200
                if closed:
                    self._clients[owner].pop(key, None)
            elif message["type"] == "http.response.start":
                issued = Headers(raw=message["headers"]).get(CONNECTION_HEADER, "")
                if issued:
                    now = asyncio.get_running_loop().time()
                    self._clients[owner][issued] = now
                    self._initialized[owner].append(now)
            await send(message)

        self._requests[owner] += 1
        try:
            receive = _receive_in_time(receive, self._limits.body_seconds)
            await self._app(scope, receive, watch)
        finally:
            self._requests[owner] -= 1
            if not self._requests[owner]:
                del self._requests[owner]
        if closed:
            await self._leave(owner, key)

    def _problem(self, owner: str, key: str, now: float) -> str:
        if self._requests[owner] >= self._limits.requests:
            return "too many requests at once"
        clients = self._clients[owner]
        if key:
            if key in clients:
                clients[key] = now
                clients.move_to_end(key)
            return ""
        while clients and now - next(iter(clients.values())) > self._limits.idle_seconds:
            clients.popitem(last=False)
        recent = [at for at in self._initialized[owner] if now - at < _MINUTE]
        self._initialized[owner] = recent
        if len(clients) >= self._limits.clients:
            return "too many clients are connected; close some, or wait"
        if len(recent) >= self._limits.initializes:
            return "too many clients were connected in the last minute"
        return ""


def _receive_in_time(receive: Receive, seconds: float) -> Receive:
    """Until the body is complete; after that, only the end of the connection is awaited."""
    complete = False

    async def received() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), seconds)
        except TimeoutError:
            return {"type": "http.disconnect"}
        complete = not message.get("more_body", False)
        return message

    return received


class AddressQuota:
    """Limits connections per address. Those without a complete request are closed first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count: Counter[str] = Counter()
        self._silent: defaultdict[str, OrderedDict[Any, None]] = defaultdict(OrderedDict)

    def add(self, address: str, connection: Any) -> bool:
        """Whether the connection is admitted. A full address loses its longest silent one."""
        self._count[address] += 1
        if self._count[address] > self._most:
            if not self._silent[address]:
                return False
            oldest, _ = self._silent[address].popitem(last=False)
            oldest.transport.abort()
        self._silent[address][connection] = None
        return True

    def busy(self, address: str, connection: Any) -> None:
        self._silent[address].pop(connection, None)

    def silent(self, address: str, connection: Any) -> None:
        self._silent[address][connection] = None

    def remove(self, address: str, connection: Any) -> None:
        self._count[address] -= 1
        self.busy(address, connection)
        if not self._count[address]:
            del self._count[address]
            self._silent.pop(address, None)


def slow_client_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol that cuts off clients who send nothing, or a byte at a time."""
    quota = AddressQuota(limits.connections)

    class SlowClientProtocol(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _address = ""
        _unread = 0
        """Bytes that belong neither to complete headers nor to a body."""
        _in_headers = True
        _waiting_since = 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = self.client[0] if self.client else ""
            if quota.add(self._address, self):
                self._waiting_since = self.loop.time()
                self._await_headers()
            else:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            self._unread += len(data)
            super().data_received(data)
            too_long = self._unread > _LONGEST_HEADERS and not self.transport.is_closing()
            if not self._between_requests:
                quota.busy(self._address, self)
                if too_long:  # trailers without end
                    self.transport.abort()
                return
            if too_long:
                self.send_400_response("these headers are too long")
            self._await_headers()

        def on_message_begin(self) -> None:
            self._in_headers = True
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_headers:  # trailers are not used, so they aren't kept
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_headers, self._unread = False, 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._unread = 0
            super().on_body(body)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._between_requests and not self.transport.is_closing():
                quota.silent(self._address, self)
                self._waiting_since = self.loop.time()
                self._await_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            quota.remove(self._address, self)
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        @property
        def _between_requests(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _await_headers(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(limits.header_seconds, self._expire)

        def _expire(self) -> None:
            self._deadline = None
            if not self._between_requests or self.transport.is_closing():
                return
            left = self._waiting_since + limits.header_seconds - self.loop.time()
            if left > 0:
                self._deadline = self.loop.call_later(left, self._expire)
            else:
                self.transport.close()

    return SlowClientProtocol


# --- serving --------------------------------------------------------------------------


def listen(
    settings: HttpSettings, *, protected: bool = True
) -> tuple[HttpSettings, list[socket.socket]]:
    """Bind the port; port 0 takes any free one. Close the sockets, or pass them on."""
    if protected:
        settings.check()
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        for family, *_, address in dict.fromkeys(addresses):
            port = sockets[0].getsockname()[1] if sockets else settings.port
            try:
                sockets.append(_listening_socket((str(address[0]), int(port)), family))
            except OSError as problem:
                # `localhost` may have an address of a family that this machine lacks.
                if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = problem
        if missing is not None and not sockets:
            raise missing
    except (OSError, UnicodeError) as problem:
        for opened in sockets:
            opened.close()
        raise mistake(
            "no-listening",
            f"can't listen on `{in_url(settings.host)}:{settings.port}`: {problem}",
            help="choose another address or port; port 0 takes any free port",
        ) from None
    return replace(settings, port=sockets[0].getsockname()[1]), sockets


def _listening_socket(address: tuple[str, int], family: int) -> socket.socket:
    made = socket.create_server(address, family=family, backlog=1024)
    # Accepted connections inherit these. A client that vanished is noticed within two minutes.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    return made


async def serve_http(
    server: McpServer,
    settings: HttpSettings,
    sockets: list[socket.socket],
    *,
    health: Health | None = None,
    reread: Callable[[], HttpSettings | None] | None = None,
) -> None:
    """Serve until stopped. On SIGHUP, ``reread`` gives the new tokens, hosts and origins."""
    pool = server.pool
    health = health or Health(pool.store)
    app = HttpApp(server, settings)
    protocol = slow_client_protocol(settings.limits)
    running = _Server(_config(ObservedApp(app, health), settings, protocol), health)

    def readmit() -> None:
        try:
            fresh = (reread() if reread else None) or settings
            app.admit(replace(fresh, port=settings.port))
            LOG.warning("tokens, hosts and origins were reloaded")
        except SopilotError as problem:
            LOG.warning("tokens, hosts and origins were not reloaded: %s", problem)

    watching = asyncio.create_task(health.watch(pool.tidy, lambda: len(pool.live)))
    handlers = {signal.SIGINT: running.stop, signal.SIGTERM: running.stop, signal.SIGHUP: readmit}
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    admin = await _serve_admin(health, settings)
    try:
        await running.serve(sockets)
    finally:
        for task in (watching, *admin):
            task.cancel()
        for number in handlers:
            loop.remove_signal_handler(number)
    await asyncio.gather(watching, *admin, return_exceptions=True)


def _config(app: ASGIApp, settings: HttpSettings, http: type[Any] | str = "auto") -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(settings.limits.drain_seconds)),
    )


async def _serve_admin(health: Health, settings: HttpSettings) -> list[asyncio.Task[None]]:
    if settings.admin is None:
        return []
    _, sockets = listen(HttpSettings(*settings.admin), protected=False)
    running = _Server(_config(AdminApp(health), settings), health)

    async def serve() -> None:
        try:
            await running.serve(sockets)
        finally:
            for opened in sockets:
                opened.close()

    return [asyncio.create_task(serve())]


class _Server(uvicorn.Server):
    """Ends without raising the signal again: sessions must still be released."""

    def __init__(self, config: uvicorn.Config, health: Health) -> None:
        super().__init__(config)
        self._health = health

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Drain; the second time, stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._health.stopping.set()
        self._health.meter.set("draining", 1)
