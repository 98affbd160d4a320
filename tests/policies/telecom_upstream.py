"""An MCP server over standard streams with the tools of the small telephone company."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from telecom import Telecom

WORLD = Telecom()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=one.name, description=one.description, input_schema=dict(one.parameters))
        for one in WORLD.schemas()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    result = await WORLD.call(params.name, params.arguments or {}, key="")
    return types.CallToolResult(content=[], structured_content=result.value, is_error=not result.ok)


async def main() -> None:
    server: Server[Any] = Server("telecom", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
