"""How much of a server one client can take: connections, requests at once, and time.

One who opens connections and says nothing, or sends a request a byte at a time, is cut off;
one who opens many gets no more than a share. Others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sopilot.doors.mcp._clients import LOCAL
from sopilot.language.diagnostics import did_you_mean, mistake


@dataclass(frozen=True, slots=True)
class Limits:
    """``header_seconds`` is how long a request may take to arrive up to its body, and
    ``body_seconds`` how long the next piece of a body may. ``connections`` are those of one
    address, ``requests`` those that one owner has under way, streams that are listened on
    among them. ``sessions`` have connections to upstreams at once, ``sessions_of_one`` for one
    owner; one that nobody used for ``idle_seconds`` gives its connections back. Stopping waits
    ``drain_seconds`` for what is under way."""

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    connections: int = 200
    requests: int = 100
    sessions: int = 200
    sessions_of_one: int = 50
    idle_seconds: float = 300.0
    drain_seconds: float = 5.0
    connected: Counter[str] = field(default_factory=Counter, compare=False)


NAMES = ("header_seconds", "body_seconds", "connections", "requests", "sessions",
         "sessions_of_one", "idle_seconds", "drain_seconds")  # fmt: skip


def limits_from(given: Sequence[str]) -> Limits:
    """``NAME=NUMBER`` each."""
    values: dict[str, float] = {}
    for text in given:
        name, _, number = text.partition("=")
        if name not in NAMES:
            raise mistake("unknown-limit", f"`{name}` is no limit", help=did_you_mean(name, NAMES))
        try:
            values[name] = float(number) if name.endswith("_seconds") else int(number)
        except ValueError:
            values[name] = 0
        if not 0 < values[name] < math.inf:
            raise mistake("bad-limit", f"`{text}` is not NAME=NUMBER with a number above 0")
    return Limits(**values)  # type: ignore[arg-type]  # whole numbers where they are wanted


def protocol(limits: Limits) -> type[H11Protocol]:
    """What uvicorn makes for every connection."""

    class Impatient(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _address = ""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = self.client[0] if self.client else ""
            limits.connected[self._address] += 1
            if limits.connected[self._address] > limits.connections:
                transport.abort()
            else:
                self._wait_for_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._between_requests:
                self._wait_for_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            limits.connected[self._address] -= 1
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
            if self._between_requests and not self.transport.is_closing():
                self.transport.close()

    return Impatient


class Shares:
    """Behind the gate, which knows the owner: requests at once, and bodies that dawdle."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = scope.get("user")
        owner = user.username if isinstance(user, AuthenticatedUser) else LOCAL
        if self._under_way[owner] >= self._limits.requests:
            refused = PlainTextResponse(
                "too many requests at once", 429, headers={"Retry-After": "1"}
            )
            await refused(scope, receive, send)
            return
        self._under_way[owner] += 1
        try:
            await self._app(scope, _in_time(receive, self._limits.body_seconds), send)
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]


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
