"""How much of a server one client can take: connections, requests at once, and time.

One who opens connections and says nothing, or sends a request a byte at a time, is cut off;
one who opens many gets no more than a share. Others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sopilot.integrations.mcp.clients import CONNECTION_HEADER, LOCAL
from sopilot.messages.diagnostic import Diagnostic, did_you_mean
from sopilot.messages.errors import UserMistake


@dataclass(frozen=True, slots=True)
class Limits:
    """``header_seconds`` is how long a request may take to arrive up to its body,
    ``body_seconds`` how long the next piece of a body may, and ``idle_seconds`` how long a
    client or a session that nobody uses is kept. ``connections`` are those of one address,
    ``requests`` those that one owner has under way, streams that are listened on among them;
    ``clients`` are those that one owner has connected with `initialize`, and
    ``initializes`` how many it may connect in a minute. ``sessions`` are kept at once,
    ``sessions_of_one`` for one owner. ``upstreams`` is how many connections to upstream servers,
    and so processes, there are at most. Stopping waits ``drain_seconds`` for what is under way."""

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 300.0
    drain_seconds: float = 5.0
    connections: int = 200
    requests: int = 100
    clients: int = 500
    initializes: int = 600
    sessions: int = 200
    sessions_of_one: int = 50
    upstreams: int = 400

    def seats(self, upstreams: int) -> int:
        """How many sessions may be kept in front of so many upstreams, each with connections of
        its own to every one of them."""
        return max(1, min(self.sessions, self.upstreams // max(1, upstreams)))


def read_limits(given: Sequence[str]) -> Limits:
    """``NAME=NUMBER``, the names with or without dashes."""
    kinds = {one.name: one.type for one in fields(Limits)}
    found: dict[str, Any] = {}
    for text in given:
        name, _, written = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in kinds:
            raise _mistake(f"`{name}` is no limit", did_you_mean(name, kinds))
        whole = kinds[name] == "int"
        try:
            number = int(written) if whole else float(written)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number <= 0:
            what = "a whole number" if whole else "a number of seconds"
            raise _mistake(f"`{text}`: `{written}` is not {what} above 0", f"{name}=30")
        found[name] = number
    return replace(Limits(), **found)


def _mistake(message: str, cure: str) -> UserMistake:
    return UserMistake([Diagnostic("bad-limit", message, help=cure)])


class Connected:
    """The connections of each address; those of which no whole request has come yet give way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count: Counter[str] = Counter()
        self._silent: defaultdict[str, OrderedDict[Any, None]] = defaultdict(OrderedDict)

    def came(self, address: str, one: Any) -> bool:
        """Whether there is room. The one that has been silent for longest makes some."""
        self._count[address] += 1
        if self._count[address] <= self._most:
            self._silent[address][one] = None
            return True
        if not self._silent[address]:
            return False
        oldest, _ = self._silent[address].popitem(last=False)
        oldest.transport.abort()
        self._silent[address][one] = None
        return True

    def spoke(self, address: str, one: Any) -> None:
        self._silent[address].pop(one, None)

    def fell_silent(self, address: str, one: Any) -> None:
        self._silent[address][one] = None

    def left(self, address: str, one: Any) -> None:
        self._count[address] -= 1
        self.spoke(address, one)
        if not self._count[address]:
            del self._count[address]
            self._silent.pop(address, None)


def protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """What uvicorn makes for every connection."""
    connected = Connected(limits.connections)

    class Impatient(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _address = ""
        _unread = 0
        """How much has come that was neither whole headers nor a body."""
        _in_headers = True
        _waits_since = 0.0
        """Since the connection was made, or the last answer was out."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = self.client[0] if self.client else ""
            if connected.came(self._address, self):
                self._waits_since = self.loop.time()
                self._wait_for_headers()
            else:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            self._unread += len(data)
            super().data_received(data)
            too_long = self._unread > _LONGEST_HEADERS and not self.transport.is_closing()
            if not self._between_requests:
                connected.spoke(self._address, self)
                if too_long:  # lines behind a body, or beside its chunks, without an end
                    self.transport.abort()
                return
            if too_long:
                self.send_400_response("these headers are too long")
            self._wait_for_headers()

        def on_message_begin(self) -> None:
            self._in_headers = True
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_headers:  # those behind a body are read by nobody, and not kept
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
                connected.fell_silent(self._address, self)
                self._waits_since = self.loop.time()
                self._wait_for_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            connected.left(self._address, self)
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        @property
        def _between_requests(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait_for_headers(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(limits.header_seconds, self._late)

        def _late(self) -> None:
            self._deadline = None
            if not self._between_requests or self.transport.is_closing():
                return
            # It may be a moment only since the last answer: who is busy is not cut off.
            left = self._waits_since + limits.header_seconds - self.loop.time()
            if left > 0:
                self._deadline = self.loop.call_later(left, self._late)
            else:
                self.transport.close()

    return Impatient


_MINUTE = 60.0


_LONGEST_HEADERS = 64 << 10


class Shares:
    """Behind the gate, which knows the owner: requests at once, and bodies that dawdle."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._under_way: Counter[str] = Counter()
        self._newcomers = Newcomers(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = scope.get("user")
        owner = user.username if isinstance(user, AuthenticatedUser) else LOCAL
        now = asyncio.get_running_loop().time()
        why = ""
        if self._under_way[owner] >= self._limits.requests:
            why = "too many requests at once"
        else:
            why = self._newcomers.refusal(owner, scope, now)
        if why:
            refused = PlainTextResponse(why, 429, headers={"Retry-After": "1"})
            await refused(scope, receive, send)
            return
        self._under_way[owner] += 1
        send = self._newcomers.noting(owner, scope, now, send)
        try:
            await self._app(scope, _in_time(receive, self._limits.body_seconds), send)
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]


class Newcomers:
    """Who connects with `initialize` gets an id, and the server keeps something for it until it
    leaves or nobody has used it for ``idle_seconds``: an owner has so many at once, and makes so
    many a minute. A request with an id is no newcomer."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._used: defaultdict[str, OrderedDict[str, float]] = defaultdict(OrderedDict)
        self._made: defaultdict[str, list[float]] = defaultdict(list)

    def refusal(self, owner: str, scope: Scope, now: float) -> str:
        used = self._used[owner]
        key = Headers(scope=scope).get(CONNECTION_HEADER, "")
        if key:
            if key in used:
                used[key] = now
                used.move_to_end(key)
            return ""
        while used and now - next(iter(used.values())) > self._limits.idle_seconds:
            used.popitem(last=False)
        made = self._made[owner] = [at for at in self._made[owner] if now - at < _MINUTE]
        if len(used) >= self._limits.clients:
            return "too many clients are connected; close some, or wait"
        if len(made) >= self._limits.initializes:
            return "too many clients were connected in the last minute"
        return ""

    def noting(self, owner: str, scope: Scope, now: float, send: Send) -> Send:
        """Ids are counted as they are given, and forgotten as they are given back."""
        key = Headers(scope=scope).get(CONNECTION_HEADER, "")

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = Headers(raw=message["headers"]).get(CONNECTION_HEADER, "")
                if given and not key:
                    self._used[owner][given] = now
                    self._made[owner].append(now)
                elif key and scope["method"] == "DELETE" and message["status"] == 200:
                    self._used[owner].pop(key, None)
            await send(message)

        return noted


def _in_time(receive: Receive, seconds: float) -> Receive:
    """Until the body is whole; after that only the end of the connection is waited for."""
    whole = False

    async def received() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), seconds)
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = not message.get("more_body", False)
        return message

    return received
