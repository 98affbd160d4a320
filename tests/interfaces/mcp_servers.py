"""MCP servers in this process: of a bundled example, or a gateway, and over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

from mcp.client import Client

from sopilot.handbook.model import Handbook
from sopilot.integrations.mcp.http import listen, serve_http
from sopilot.integrations.mcp.options import GatewayOptions, HttpSettings, UpstreamSpec
from sopilot.integrations.mcp.pins import Catalogue, Pins
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import gateway_service, source_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.integrations.metrics import NoMetrics
from sopilot.records.store import Store
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import view_named

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
"""Parameters of `initialize`."""
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class RecordingMeter(NoMetrics):
    """Counters and gauges by name and labels."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.gauges: dict[str, float] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counted[" ".join((name, *labels.values()))] += int(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        self.gauges[" ".join((name, *labels.values()))] = value


def failing(**problems: Exception) -> MemoryStore:
    """A store whose methods raise these exceptions."""
    store = MemoryStore()
    for method, problem in problems.items():
        setattr(store, method, AsyncMock(side_effect=problem))
    return store


def bank_pool(store: Store | None = None, **options: Any) -> SessionPool:
    service = source_service(open_source("bank"), view_named("pg"))
    return SessionPool(store or MemoryStore(), service, **options)


@asynccontextmanager
async def gateway_to(
    handbook: Handbook,
    *specs: UpstreamSpec,
    view: str = "pg",
    store: Store | None = None,
    pins: Pins | None = None,
    tell: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> AsyncIterator[McpServer]:
    catalogue = Catalogue(
        specs,
        pins or Pins(MemoryStore()),
        tell,
        handbook=handbook,
        options=GatewayOptions(**options),
    )
    await catalogue.open()
    pool = SessionPool(
        store or MemoryStore(), gateway_service(handbook, view_named(view), catalogue)
    )
    server = McpServer(pool, catalogue=catalogue, tell=tell)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def serving(
    server: McpServer, settings: HttpSettings | None = None, **options: Any
) -> AsyncIterator[HttpSettings]:
    """Where it is served. ``options`` are those of ``serve_http``. The server isn't closed."""
    bound, sockets = listen(settings or HttpSettings(port=0))
    running = asyncio.create_task(serve_http(server, bound, sockets, **options))
    try:
        yield bound
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for opened in sockets:
            opened.close()


@asynccontextmanager
async def over_http(
    server: McpServer, hear: Callable[[object], Awaitable[None]] | None = None
) -> AsyncIterator[Client]:
    async with serving(server) as at, Client(at.url, message_handler=hear) as client:
        yield client
    await server.close()
