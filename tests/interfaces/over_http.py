"""A server of procedures over HTTP in this process, and a client that is connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from mcp.client import Client

from sopilot.integrations.mcp.http import listen, serve_http
from sopilot.integrations.mcp.options import HttpSettings
from sopilot.integrations.mcp.server import McpServer


@asynccontextmanager
async def serving(server: McpServer, **settings: object) -> AsyncIterator[str]:
    """The server's URL. It isn't closed."""
    bound, sockets = listen(HttpSettings("127.0.0.1", 0, **settings))  # type: ignore[arg-type]
    running = asyncio.create_task(serve_http(server, bound, sockets))
    try:
        yield bound.url
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for opened in sockets:
            opened.close()


@asynccontextmanager
async def over_http(
    server: McpServer, hear: Callable[[object], Awaitable[None]] | None = None
) -> AsyncIterator[Client]:
    async with serving(server) as url, Client(url, message_handler=hear) as client:
        yield client
    await server.close()
