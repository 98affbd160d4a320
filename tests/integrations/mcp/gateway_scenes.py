"""One client, one gateway, one upstream: what the tests of the gateway are played in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any

import mcp_types as types
from mcp.client import Client
from served import gateway

from sopilot.integrations.mcp.server import McpServer
from sopilot.machine.replay import whole_events
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Event


class Watched:
    server: McpServer

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.told: list[str] = []

    async def events(self) -> list[Event]:
        (record,) = await self.store.sessions()
        return whole_events(
            await self.store.events(record.id), await self.store.payloads(record.id)
        )

    async def notes(self, name: str) -> list[Any]:
        return [
            event.payload["details"]
            for event in await self.events()
            if event.kind == "note" and event.payload["name"] == name
        ]


@asynccontextmanager
async def played(
    *arguments: str, timeout_seconds: float = 60.0, url: str = ""
) -> AsyncIterator[tuple[Client, Watched]]:
    """On the upstream at ``url``, or on one of its own that ``arguments`` start."""
    watched = Watched()
    async with (
        gateway(
            *(arguments or ("bank",)),
            store=watched.store,
            told=watched.told,
            timeout_seconds=timeout_seconds,
            url=url,
        ) as watched.server,
        Client(watched.server.protocol) as client,
    ):
        yield client, watched


async def call(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    result = await client.call_tool(name, arguments)
    assert isinstance(result, types.CallToolResult)
    return result


async def offered(client: Client) -> Sequence[types.Tool]:
    return (await client.list_tools()).tools


async def until(holds: Callable[[], Any]) -> Any:
    """Wait until the function, which may be asynchronous, returns something."""
    async with asyncio.timeout(10):
        while True:
            value = holds()
            value = await value if isawaitable(value) else value
            if value:
                return value
            await asyncio.sleep(0.05)
