"""MCP servers in processes of their own, for the measurements; as a program, one that echoes.

python benchmarks/mcp_processes.py [--http PORT [--stateless]]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SOPILOT = (sys.executable, "-m", "sopilot.cli.main")
ECHO = (sys.executable, __file__)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def process(
    command: Sequence[str], port: int, environment: Mapping[str, str] | None = None
) -> AsyncIterator[None]:
    """Runs until the end of the block; answers on the port before the block begins."""
    running = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **(environment or {})}, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx2.AsyncClient() as http:
            while running.returncode is None:
                try:
                    await http.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx2.TransportError:
                    await asyncio.sleep(0.1)
        yield
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


async def _list(ctx: Any, params: Any) -> types.ListToolsResult:
    schema = {"type": "object"}
    echo = types.Tool(name="echo", description="Says it back.", input_schema=schema)
    return types.ListToolsResult(tools=[echo])


async def _call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content=params.arguments or {})


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--stateless", action="store_true")
    given = parser.parse_args()
    port = given.http
    server: Server[Any] = Server("echo", on_list_tools=_list, on_call_tool=_call)
    if port is not None:
        import uvicorn

        app = server.streamable_http_app(stateless_http=given.stateless)
        config = uvicorn.Config(app, port=port, log_level="error")
        await uvicorn.Server(config).serve()
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
