"""Upstream servers that do not speak well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
import uvicorn
from gateway_scenes import until
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from sopilot.integrations.mcp.http import listen
from sopilot.integrations.mcp.options import HttpSettings, UpstreamSpec
from sopilot.integrations.mcp.upstream import Upstream, UpstreamFailed, UpstreamRefused
from warm import warm_python

LYING = Path(__file__).with_name("lying_upstream.py")


async def test_an_answer_that_cannot_be_read_is_not_waited_for(tmp_path: Path) -> None:
    command = (*warm_python(), str(LYING), "garbled", str(tmp_path / "seen"))
    spec = UpstreamSpec("it", command=command)
    upstream = Upstream(spec, timeout_seconds=300)
    async with asyncio.timeout(60):
        with pytest.raises(UpstreamFailed):
            await upstream.call("open_door", {})
        # Lines that a server merely prints don't break its connection.
        await upstream.connect()
        connection = upstream.connection_id
        for _ in range(3):
            result = await upstream.call("note", {})
            assert result.content[0].model_dump()["text"] == "fine"
        assert upstream.connection_id == connection
    await upstream.close()


def tool_named(name: str) -> types.Tool:
    return types.Tool(name=name, input_schema={"type": "object"})


@asynccontextmanager
async def listed_upstream(
    recheck_seconds: float,
) -> AsyncIterator[tuple[Upstream, list[str], list[list[str]]]]:
    """An upstream whose server records what reaches it, and the lists that were compared."""
    requests: list[str] = []
    compared: list[list[str]] = []
    names = ["call"]

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        requests.append("list")
        return types.ListToolsResult(tools=[tool_named(name) for name in names])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        requests.append(params.name)
        if params.name == "change":
            names.append("new")
            await ctx.session.send_tool_list_changed()
            await bus.publish(ToolsListChanged())
        return types.CallToolResult(content=[])

    bus = InMemorySubscriptionBus()
    server: Server[Any] = Server(
        "it",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    settings, sockets = listen(HttpSettings("127.0.0.1", 0))
    running = uvicorn.Server(
        uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(running.serve(sockets))
    upstream = Upstream(
        UpstreamSpec("it", url=settings.url),
        lambda tools: compared.append([tool.name for tool in tools]),
        recheck_seconds=recheck_seconds,
    )
    try:
        yield upstream, requests, compared
    finally:
        await upstream.close()
        running.should_exit = True
        await serving


async def test_every_call_is_verified_without_a_cache() -> None:
    async with listed_upstream(0.0) as (upstream, requests, _):
        for _ in range(2):
            await upstream.verify(fresh=False)
            await upstream.call("call", {})
        assert requests == ["list", "call", "list", "call"]


async def test_a_verified_list_is_reused_except_when_a_fresh_one_is_wanted() -> None:
    async with listed_upstream(60.0) as (upstream, requests, _):
        for fresh in (False, False, True):
            await upstream.verify(fresh=fresh)
            await upstream.call("call", {})
        assert requests == ["list", "call", "call", "list", "call"]


async def test_concurrent_calls_share_a_list_that_was_requested_after_they_came() -> None:
    async with listed_upstream(0.0) as (upstream, requests, _):
        await asyncio.gather(*(upstream.verify() for _ in range(5)))
        assert requests.count("list") <= 2


async def test_another_connection_is_verified_anew() -> None:
    async with listed_upstream(60.0) as (upstream, requests, _):
        await upstream.verify(fresh=False)
        first = upstream.connection_id
        await upstream._drop()
        await upstream.verify(fresh=False)
        assert requests == ["list", "list"]
        assert upstream.connection_id != first
        with pytest.raises(UpstreamRefused, match="was lost"):
            await upstream.call("call", {}, connection=first)
        assert requests == ["list", "list"]


async def test_a_reported_change_is_compared_at_once() -> None:
    async with listed_upstream(60.0) as (upstream, requests, compared):
        await upstream.verify()
        await upstream.call("change", {})
        await until(lambda: len(compared) == 2)
        assert compared == [["call"], ["call", "new"]]
        # The next call waits for that, although the last list is fresh enough.
        before = requests.count("list")
        await upstream._on_message(types.ToolListChangedNotification())
        await upstream.verify(fresh=False)
        assert requests.count("list") > before
