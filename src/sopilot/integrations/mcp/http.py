"""The server over streamable HTTP, behind a gatekeeper."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sopilot.integrations.logs import LOG
from sopilot.integrations.mcp.clients import CONNECTION_HEADER, LOCAL
from sopilot.integrations.mcp.connections import Connections
from sopilot.integrations.mcp.direct import PATH, Direct
from sopilot.integrations.mcp.limits import Limits, Shares, protocol
from sopilot.integrations.mcp.server import ProcedureServer
from sopilot.integrations.mcp.stateful_clients import Clients
from sopilot.integrations.mcp.watch import Admin, Observed, Watch, settled
from sopilot.messages.errors import SopilotError, UserMistake, mistake

SHORTEST_TOKEN = 16


LAST_PORT = 65535


_EVERYWHERE = ("0.0.0.0", "::", "")


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


_ONCE = ("host", "origin", "authorization")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """``host`` is an address without brackets, or a name. ``tokens`` maps an owner's name to
    its token. ``hosts`` are the names under which clients may ask for this server, beside the
    address itself; ``origins`` the web pages that may talk to it."""

    host: str = "127.0.0.1"
    port: int = 8321
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    stateless: bool = False
    """Any server of the same store goes on with any request; nothing is kept for a connection."""
    admin: tuple[str, int] | None = None
    """An address for operators: health and metrics."""

    def check(self) -> None:
        """Raises rather than serve strangers."""
        if not 0 <= self.port <= LAST_PORT:
            raise _mistake("no-such-port", f"there is no port {self.port}", f"0 to {LAST_PORT}")
        if not is_loopback(self.host) and not self.tokens:
            raise _mistake(
                "unprotected-server",
                f"`{self.host}` can be reached by others, and there is no token",
                "give --token-file, or bind to 127.0.0.1",
            )
        if self.host in _EVERYWHERE and not self.hosts:
            raise _mistake(
                "unknown-host-name",
                "bound to every address, the server cannot tell its own name from a forged one",
                "say under which names it is reached: --allow-host NAME",
            )
        for owner, token in self.tokens.items():
            if len(token) < SHORTEST_TOKEN:
                raise _mistake(
                    "short-token",
                    f"the token of `{owner}` has fewer than {SHORTEST_TOKEN} characters",
                    "make one with: python -c 'import secrets; print(secrets.token_hex(32))'",
                )

    @property
    def allowed_hosts(self) -> frozenset[str]:
        return frozenset(
            spelled.lower()
            for one in (*self._own_names, *map(in_url, self.hosts))
            for spelled in ((one,) if _has_port(one) else (one, f"{one}:{self.port}"))
        )

    @property
    def allowed_origins(self) -> frozenset[str]:
        local = self._own_names if is_loopback(self.host) else ()
        own = (f"http://{name}:{self.port}" for name in local)
        return frozenset(one.lower().rstrip("/") for one in (*own, *self.origins))

    @property
    def url(self) -> str:
        return f"http://{in_url(self.host)}:{self.port}{PATH}"

    @property
    def _own_names(self) -> tuple[str, ...]:
        if self.host in _EVERYWHERE:
            return ()
        return (in_url(self.host), *(_LOOPBACK if is_loopback(self.host) else ()))


def in_url(host: str) -> str:
    """As it stands in URLs and Host headers: addresses of IPv6 in brackets, at their shortest."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host
    return f"[{address}]" if address.version == 6 else host


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gatekeeper:
    """Host, Origin and token of every request, before anything else reads it."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        self.admit(settings)

    def admit(self, settings: HttpSettings) -> None:
        """From now on these tokens, names and origins."""
        self._hosts = settings.allowed_hosts
        self._origins = settings.allowed_origins
        self._digests = {
            owner: _digest(token.encode("utf-8")) for owner, token in settings.tokens.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = self._refusal(Headers(scope=scope), scope)
            if refused is not None:
                await refused(scope, receive, send)
                return
        elif scope["type"] != "lifespan":
            return  # nothing else is served here
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, scope: Scope) -> Response | None:
        for name in _ONCE:
            if len(headers.getlist(name)) > 1:
                return PlainTextResponse(f"more than one {name} header", 400)
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("this server has another name", 421)
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return PlainTextResponse("this origin is not allowed", 403)
        if not self._digests:
            return None
        owner = self._owner(headers.get("authorization", ""))
        if owner is None:
            challenge = {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("a token is needed", 401, headers=challenge)
        token = AccessToken(token="", client_id=owner, scopes=[])
        scope["user"] = AuthenticatedUser(token)
        return None

    def _owner(self, authorization: str) -> str | None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer":
            return None
        given = _digest(token.strip().encode("latin-1", "replace"))
        found = None
        for owner, digest in self._digests.items():
            # Every one is compared, so that time tells nothing about which fits.
            if hmac.compare_digest(given, digest):
                found = owner
        return found


class Farewell:
    """Behind the gate: a client that closes its connection leaves nothing open."""

    def __init__(self, app: ASGIApp, procedures: ProcedureServer) -> None:
        self._app = app
        self._procedures = procedures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        statuses: list[int] = []

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        await self._app(scope, receive, noted)
        if scope["type"] == "http" and scope["method"] == "DELETE" and statuses == [200]:
            user = scope.get("user")
            owner = user.username if isinstance(user, AuthenticatedUser) else LOCAL
            key = Headers(scope=scope).get(CONNECTION_HEADER, "")
            await self._procedures.left(owner, key)


def http_app(procedures: ProcedureServer, settings: HttpSettings) -> Gatekeeper:
    settings.check()
    app: ASGIApp = procedures.server.streamable_http_app(
        streamable_http_path=PATH,
        host=settings.host,
        stateless_http=settings.stateless,
        session_idle_timeout=settings.limits.idle_seconds,
        # The gatekeeper is stricter and stands in front.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    if settings.stateless:
        inner: ASGIApp = Connections(Direct(app, procedures.server), procedures.hub)
    else:
        clients = Clients(app)
        procedures.server.middleware.append(clients.meet)
        inner = Farewell(
            Direct(clients, procedures.server, clients=clients, coming=procedures.coming),
            procedures,
        )
    return Gatekeeper(Shares(inner, settings.limits), settings)


def listen(
    settings: HttpSettings, *, protected: bool = True
) -> tuple[HttpSettings, list[socket.socket]]:
    """Takes the port before anything is said of it; with 0, any free one. Close the sockets, or
    hand them to ``serve_http``."""
    if protected:
        settings.check()
    taken: list[socket.socket] = []
    missing: OSError | None = None
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        for family, *_, address in dict.fromkeys(found):
            port = taken[0].getsockname()[1] if taken else settings.port
            try:
                taken.append(_listening((str(address[0]), int(port)), family))
            except OSError as problem:
                # `localhost` may have an address of a family that this machine does not speak.
                if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = problem
        if missing is not None and not taken:
            raise missing
    except (OSError, UnicodeError) as problem:
        for one in taken:
            one.close()
        raise _mistake(
            "no-listening",
            f"`{in_url(settings.host)}:{settings.port}` cannot be listened on: {problem}",
            "choose another address or port; with port 0 any free one is taken",
        ) from None
    return replace(settings, port=taken[0].getsockname()[1]), taken


def listen_apart(
    settings: HttpSettings, workers: int
) -> tuple[HttpSettings, list[list[socket.socket]]]:
    """Sockets for each of several workers on one port: the system deals connections out to them.
    Of one that they share, whoever is woken first takes most. Where it does not, they share."""
    settings, taken = listen(settings)
    if workers == 1 or sys.platform != "linux":
        return settings, [taken] * workers
    # That nobody else has the port is known by now: on a shared one nobody would be told.
    names = [(one.getsockname()[:2], one.family) for one in taken]
    for one in taken:
        one.close()
    return settings, [[_listening(*name, apart=True) for name in names] for _ in range(workers)]


def _listening(address: tuple[str, int], family: int, *, apart: bool = False) -> socket.socket:
    made = socket.create_server(address, family=family, backlog=1024, reuse_port=apart)
    # A client that vanished is noticed within two minutes, whatever it was listening for.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    return made


async def serve_http(
    procedures: ProcedureServer,
    settings: HttpSettings,
    sockets: list[socket.socket],
    *,
    watch: Watch | None = None,
    reread: Callable[[], HttpSettings] | None = None,
) -> None:
    """Until it is told to stop, on what ``listen`` has taken. ``reread`` gives the tokens, names
    and origins that hold after SIGHUP."""
    watch = watch or Watch(procedures.hub.store)
    gate = http_app(procedures, settings)
    server = _Server(_config(Observed(gate, watch), settings, protocol(settings.limits)), watch)

    def admit() -> None:
        try:
            gate.admit(replace(reread(), port=settings.port) if reread else settings)
            LOG.warning("tokens, names and origins were read again")
        except SopilotError as problem:
            LOG.warning("not read again, and as before: %s", problem)

    hub = procedures.hub
    looking = asyncio.create_task(watch.keep_looking(hub.tidy, lambda: len(hub.seats)))
    handlers = {signal.SIGINT: server.stop, signal.SIGTERM: server.stop, signal.SIGHUP: admit}
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    beside = await _serve_admin(watch, settings)
    try:
        with settled():
            await server.serve(sockets)
    finally:
        for task in (looking, *beside):
            task.cancel()
        for number in handlers:
            loop.remove_signal_handler(number)
    await asyncio.gather(looking, *beside, return_exceptions=True)


def _config(app: ASGIApp, settings: HttpSettings, http: type[Any] | str = "auto") -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        log_config=None,  # as the program logs
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(settings.limits.drain_seconds)),
    )


async def _serve_admin(watch: Watch, settings: HttpSettings) -> list[asyncio.Task[None]]:
    if settings.admin is None:
        return []
    _, sockets = listen(HttpSettings(*settings.admin), protected=False)
    server = _Server(_config(Admin(watch), settings), watch)

    async def answering() -> None:
        try:
            await server.serve(sockets)
        finally:
            for one in sockets:
                one.close()

    return [asyncio.create_task(answering())]


class _Server(uvicorn.Server):
    """Ends without raising the signal again: sessions are still to be given back."""

    def __init__(self, config: uvicorn.Config, watch: Watch) -> None:
        super().__init__(config)
        self._watch = watch

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        # Twice means at once: open streams are not waited for.
        self.force_exit = self.should_exit
        self.should_exit = True
        self._watch.stopping.set()
        self._watch.meter.set("draining", 1)


def _has_port(name: str) -> bool:
    return not name.endswith("]") and ":" in name.rpartition("]")[2]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _mistake(code: str, message: str, cure: str) -> UserMistake:
    return mistake(code, message, help=cure)
