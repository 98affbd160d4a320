"""A server of procedures over HTTP in this process, and a client that is connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from mcp.client import Client

from sopilot.integrations.mcp.http import listen, serve_http
from sopilot.integrations.mcp.options import HttpSettings
from sopilot.integrations.mcp.server import McpServer


@asynccontextmanager
async def over_http(
    server: McpServer, hear: Callable[[object], Awaitable[None]] | None = None
) -> AsyncIterator[Client]:
    settings, sockets = listen(HttpSettings("127.0.0.1", 0))
    serving = asyncio.create_task(serve_http(server, settings, sockets))
    try:
        url = f"http://127.0.0.1:{settings.port}/mcp"
        async with Client(url, message_handler=hear) as client:
            yield client
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        for one in sockets:
            one.close()
        await server.close()
