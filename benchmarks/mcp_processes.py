"""MCP servers in processes of their own, for the measurements; as a program, one that echoes.

python benchmarks/mcp_processes.py [--http PORT]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SOPILOT = (sys.executable, "-m", "sopilot.cli.main")
ECHO = (sys.executable, __file__)
ECHO_HANDBOOK = str(Path(__file__).with_name("echo.yaml"))
STARTING_SECONDS = 60.0


def echo_gateway(upstream: str, *options: str) -> list[str]:
    """The command of a gateway to the echoing server, whose tool it passes through."""
    known = ("--handbook", ECHO_HANDBOOK, "--upstream", f"echo={upstream}")
    return [*SOPILOT, "gateway", "--view", "pg", *known, "--pass-through", "echo", *options]


def cached(folder: str) -> Path:
    """A folder of the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", folder)


def npm_modules(folder: Path, *packages: str) -> Path:
    """Packages from npm, installed once."""
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--prefix", str(folder), *packages]
        subprocess.run(command, check=True, timeout=600)
    return folder / "node_modules"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(
    command: Sequence[str], port: int, home: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that answers on the port before the block begins. Its data and its log go into
    ``home``."""
    with ExitStack() as stack:
        log: Any = subprocess.DEVNULL
        environment = {**os.environ}
        if home is not None:
            home.mkdir(parents=True, exist_ok=True)
            log = stack.enter_context((home / f"{port}.log").open("w+"))
            environment["SOPILOT_HOME"] = str(home)
        running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        try:
            ends = time.monotonic() + STARTING_SECONDS
            while not _answers(port):
                if running.poll() is not None or time.monotonic() > ends:
                    why = (home / f"{port}.log").read_text() if home is not None else ""
                    raise SystemExit(f"`{' '.join(command)}` does not answer: {why}")
                time.sleep(0.1)
            yield running
        finally:
            running.terminate()
            running.wait(30)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def serve_http(server: Server[Any], port: int) -> None:
    import uvicorn

    app = server.streamable_http_app()
    config = uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve()


async def _list(ctx: Any, params: Any) -> types.ListToolsResult:
    schema = {"type": "object"}
    echo = types.Tool(name="echo", description="Says it back.", input_schema=schema)
    return types.ListToolsResult(tools=[echo])


async def _call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content=params.arguments or {})


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    options = parser.parse_args()
    server: Server[Any] = Server("echo", on_list_tools=_list, on_call_tool=_call)
    if options.http is not None:
        await serve_http(server, options.http)
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
