"""An executor that only speaks MCP, and an upstream whose tools keep the world's record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import mcp_types as types
import uvicorn
from mcp.client import Client
from mcp.server.lowlevel import Server
from scripted_moves import Script

from sopilot.integrations.mcp.http import listen
from sopilot.integrations.mcp.options import HttpSettings
from sopilot.integrations.mcp.server import FRAME_URI
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON


def texts(result: object) -> list[str]:
    assert isinstance(result, types.CallToolResult)
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


async def send(client: Client, script: Script, *, guard: bool = False) -> None:
    """Every move of the script; what it may copy is the frame as the server shows it."""
    slot = ""
    if not guard:
        frame = (await client.read_resource(FRAME_URI)).contents[0]
        assert isinstance(frame, types.TextResourceContents)
        slot = frame.text
    while (move := script.next(slot)) is not None:
        result = await client.call_tool(move.tool, dict(move.arguments))
        answer, *rest = texts(result) or [""]
        script.answered(answer)
        slot = "\n".join(rest)


class PerformingTools(Protocol):
    def schemas(self) -> Sequence[ToolSchema]: ...

    def perform(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult: ...


class Upstream:
    """Tools of a simulator as somebody's MCP server."""

    def __init__(self, tools: PerformingTools) -> None:
        self._tools = tools
        self.server: Server[Any] = Server(
            "recording", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=schema.name, input_schema=dict(schema.parameters))
                for schema in self._tools.schemas()
            ]
        )

    async def _call_tool(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = self._tools.perform(params.name, params.arguments or {})
        if isinstance(result.value, dict):
            return types.CallToolResult(
                content=[], structured_content=result.value, is_error=not result.ok
            )
        text = types.TextContent(text=json.dumps(result.value))
        return types.CallToolResult(content=[text], is_error=not result.ok)


@asynccontextmanager
async def upstream_url(tools: PerformingTools) -> AsyncIterator[str]:
    """In this process, on a port of its own."""
    settings, sockets = listen(HttpSettings("127.0.0.1", 0))
    app = Upstream(tools).server.streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    serving = asyncio.create_task(server.serve(sockets))
    try:
        yield f"http://127.0.0.1:{settings.port}/mcp"
    finally:
        serving.cancel()  # an orderly shutdown would take 0.2 s
        await asyncio.gather(serving, return_exceptions=True)
        for opened in sockets:
            opened.close()
